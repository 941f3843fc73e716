-- Panels: the parts of a div laid out in rows, with the widths its author gave.

local S = require 'state'
local M = {}

local ALIGN = { left = 'flex-start', center = 'center', right = 'flex-end' }

--- Say whether a div lays out its parts.
function M.laid_out(div)
  return div.attributes['layout-ncol'] or div.attributes['layout-nrow'] or div.attributes.layout
end

--- Read `layout="[[1,1],[1]]"` or `"[70,30]"`: rows of widths; a negative one is a gap.
local function rows_of(layout)
  local rows = {}
  for row in layout:gsub('^%s*%[%s*%[', '['):gsub('%]%s*%]%s*$', ']'):gmatch('%[([^%[%]]+)%]') do
    local widths, total = {}, 0
    for value in row:gmatch('%-?[%d.]+') do
      table.insert(widths, tonumber(value))
      total = total + math.abs(tonumber(value))
    end
    for i, width in ipairs(widths) do widths[i] = { share = math.abs(width) / total, gap = width < 0 } end
    table.insert(rows, widths)
  end
  return rows
end

--- The rows of a panel of `count` parts.
local function plan(div, count)
  local layout = S.take(div, 'layout')
  local ncol, nrow = tonumber(S.take(div, 'layout-ncol')), tonumber(S.take(div, 'layout-nrow'))
  if layout and not ncol and not nrow then return rows_of(layout) end
  ncol = math.max(ncol or (nrow and math.ceil(count / nrow)) or 1, 1)
  local rows = {}
  for _ = 1, math.ceil(count / ncol) do
    local row = {}
    for i = 1, ncol do row[i] = { share = 1 / ncol } end
    table.insert(rows, row)
  end
  return rows
end

local function is_code(block) return block.t == 'CodeBlock' and block.classes:includes('cell-code') end

local function is_note(block)
  return is_code(block) or (block.t == 'Div' and (block.classes:includes('cell-output-stderr')
    or block.classes:includes('cell-annotation')))
end

local function has_image(block)
  return block.t == 'Para' and block.content:find_if(function(x) return x.t == 'Image' end)
end

--- Images of one paragraph are parts of their own, captioned ones figures.
local function add_images(para, add)
  local others = para.content:find_if(function(x)
    return x.t ~= 'Image' and x.t ~= 'Space' and x.t ~= 'SoftBreak'
  end)
  if others then return add(para) end
  for _, image in ipairs(para.content) do
    if image.t == 'Image' then
      local figure = #image.caption > 0
        and pandoc.Figure({ pandoc.Plain({ image }) }, { long = { pandoc.Plain(image.caption) } }, image.attr)
      add(figure or pandoc.Para({ image }))
    end
  end
end

--- Part blocks into code that stands above the panel, and cells; a heading goes into the
--- cell of what follows it.
local function partition(blocks)
  local cells, notes, heading = pandoc.List(), pandoc.List(), nil
  local function add(block)
    cells:insert(heading and pandoc.List({ heading, block }) or pandoc.List({ block }))
    heading = nil
  end
  for _, block in ipairs(blocks) do
    if is_note(block) then
      notes:insert(block)
    elseif block.t == 'Header' then
      heading = block
    elseif has_image(block) then
      add_images(block, add)
    elseif block.t ~= 'Para' or pandoc.utils.stringify(block):match('%S') then
      add(block)
    end
  end
  return notes, cells
end

local function cell(content, width, align)
  local style = ('--share: %.1f%%;'):format(width.share * 100)
  if ALIGN[align] then style = style .. 'justify-content: ' .. ALIGN[align] .. ';' end
  local class = width.gap and 'quarto-figure-spacer' or 'quarto-layout-cell'
  return pandoc.Div(content, pandoc.Attr('', { class }, { style = style }))
end

--- Lay the parts of a div out; returns what stands above the panel, and its rows.
function M.panel(div, blocks)
  local notes, cells = partition(blocks)
  local align, valign = S.take(div, 'layout-align'), S.take(div, 'layout-valign')
  local rows, at = pandoc.List(), 1
  for _, widths in ipairs(plan(div, #cells)) do
    if at > #cells then break end
    local row = pandoc.List()
    for _, width in ipairs(widths) do
      if width.gap then
        row:insert(cell({}, width))
      elseif cells[at] then
        row:insert(cell(cells[at], width, align))
        at = at + 1
      end
    end
    local classes = { 'quarto-layout-row', valign and 'quarto-layout-valign-' .. valign or nil }
    rows:insert(pandoc.Div(row, pandoc.Attr('', classes)))
  end
  return notes, rows
end

return M
