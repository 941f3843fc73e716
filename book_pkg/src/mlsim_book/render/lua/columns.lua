-- Columns of the page: what stands in the margin, or wider than the text. Here only the
-- classes come to the right elements; `render/margins.py` moves what is in the margin.

local S = require 'state'
local M = {}

local function is_column(class) return class:match('^column%-') or class == 'margin-caption' end

--- Take the classes of columns from an element: they are for what stands around it.
function M.take(element)
  local taken = element.classes:filter(is_column)
  element.classes = element.classes:filter(function(class) return not is_column(class) end)
  return taken
end

--- The column of a cell's figures or tables, as its options say (`fig-column: margin`),
--- weighing most first: the cell's own for this kind, the page's, the cell's, the page's.
local function column_for(cell, kind)
  local own, plain
  for _, class in ipairs(cell.classes) do
    own = own or class:match('^' .. kind .. '%-(column%-.+)$')
    plain = plain or class:match('^column%-.+$')
  end
  local page = S.config[kind .. '_column'] and 'column-' .. S.config[kind .. '_column']
  local all = S.config.column and 'column-' .. S.config.column
  return own or page or plain or all or nil
end

local function holds_table(block)
  local found = false
  block:walk({
    Table = function() found = true end,
    RawBlock = function(raw) found = found or raw.text:match('<table') ~= nil end,
  })
  return found
end

--- What a cell displays goes into its column; its code stays in the text.
local function cell(div)
  local laid_out = div.attributes.layout or div.attributes['layout-ncol'] or div.attributes['layout-nrow']
  local passed = false
  if not laid_out then
    for _, block in ipairs(div.content) do
      if block.t == 'Div' and block.classes:includes('cell-output-display') then
        local column = column_for(div, holds_table(block) and 'tbl' or 'fig')
        if column then
          block.classes:insert(column)
          passed = true
        end
      end
    end
  end
  div.classes = div.classes:filter(function(class)
    return not (passed and class:match('^column%-')) and not class:match('^%a%a%a%-column%-')
  end)
  return div
end

--- `.aside` is the margin under another name.
local function aside(element)
  if not element.classes:includes('aside') then return nil end
  S.remove_class(element, 'aside')
  element.classes:extend({ 'column-margin', 'margin-aside' })
  return element
end

--- A figure or table outside cells: the page may say where all of them stand.
local function placed(element, kind)
  local column = S.config[kind .. '_column'] or S.config.column
  if column and not element.classes:find_if(is_column) then element.classes:insert('column-' .. column) end
  return element
end

M.filter = {
  Div = function(div)
    if div.classes:includes('cell') then return cell(div) end
    local kind = S.kind(div.identifier)
    if kind == 'fig' or kind == 'tbl' then return placed(div, kind) end
    return aside(div)
  end,
  Span = aside,
  Figure = function(figure)
    local function image(each) return placed(each, 'fig') end
    return figure:walk({ Image = image })
  end,
}

return M
