-- Panels: the parts of a div laid out in rows, with the widths its author gave.

local S = require 'state'
local M = {}

local ALIGN = { left = 'flex-start', center = 'center', right = 'flex-end' }

local function asks(div)
  return div.attributes['layout-ncol'] or div.attributes['layout-nrow'] or div.attributes.layout
end

--- Say whether a div lays out its parts. Of layouts within layouts, the inner one holds.
function M.laid_out(div)
  if not asks(div) then return false end
  local nested = false
  pandoc.Blocks(div.content):walk({ Div = function(inner) nested = nested or asks(inner) ~= nil end })
  return not nested
end

-- ------------------------------------------------------------------- widths
local function widths_of(row)
  local total, widths = 0, {}
  for _, width in ipairs(row) do total = type(width) == 'number' and total + math.abs(width) or total end
  for i, width in ipairs(row) do
    local text = tostring(width)
    local share = type(width) == 'number' and math.abs(width) / total or nil
    local percent = not share and text:match('^%-?([%d.]+)%%$')
    widths[i] = { share = share or (percent and tonumber(percent) / 100), size = text:gsub('^%-', ''),
      gap = text:sub(1, 1) == '-' }
  end
  return widths
end

--- Read `layout="[[1,1],[1]]"` or `"[70,30]"`: rows of widths; a negative one is a gap.
local function rows_of(layout, count)
  local ok, given = pcall(pandoc.json.decode, layout, false)
  if not ok or type(given) ~= 'table' or #given == 0 then
    S.note('layout="' .. layout .. '" is no list of widths, such as [[1, 1], [1]]', 'layout=')
    given = { { 1 } }
  end
  if type(given[1]) ~= 'table' then given = { given } end
  local rows, room = {}, 0
  for i, row in ipairs(given) do
    rows[i] = widths_of(row)
    for _, width in ipairs(rows[i]) do room = room + (width.gap and 0 or 1) end
  end
  local last, more = rows[#rows], 0
  for _, width in ipairs(last) do more = more + (width.gap and 0 or 1) end
  while room < count and more > 0 do -- the last row serves for all that follow
    table.insert(rows, last)
    room = room + more
  end
  return rows
end

--- The width that a part's image asks for, which is its part's from then on.
local function asked_width(blocks)
  local found, images = nil, 0
  pandoc.Blocks(blocks):walk({ Image = function(image)
    images = images + 1
    found = image.attributes.width
  end })
  return images == 1 and found and tonumber(found:match('^([%d.]+)')) or nil
end

local function rows_of_columns(ncol, cells)
  local rows = {}
  for start = 1, #cells, ncol do
    local asked, default, total = {}, nil, 0
    for i = 1, ncol do
      asked[i] = cells[start + i - 1] and asked_width(cells[start + i - 1].content)
      default = default or asked[i]
    end
    for i = 1, ncol do
      asked[i] = asked[i] or default or 1
      total = total + asked[i]
    end
    local row = {}
    for i = 1, ncol do row[i] = { share = asked[i] / total } end
    table.insert(rows, row)
  end
  return rows
end

--- The rows of a panel.
local function plan(div, cells)
  local layout = S.take(div, 'layout')
  local ncol, nrow = tonumber(S.take(div, 'layout-ncol')), tonumber(S.take(div, 'layout-nrow'))
  if layout and not ncol and not nrow then return rows_of(layout, #cells) end
  ncol = ncol or (nrow and math.ceil(#cells / nrow)) or 1
  return rows_of_columns(math.max(math.floor(ncol), 1), cells)
end

-- -------------------------------------------------------------------- parts
local function is_code(block) return block.t == 'CodeBlock' and block.classes:includes('cell-code') end

local function is_note(block)
  return is_code(block) or (block.t == 'Div' and (block.classes:includes('cell-output-stderr')
    or block.classes:includes('cell-annotation')))
end

local function has_image(block)
  return block.t == 'Para' and block.content:find_if(function(x) return x.t == 'Image' end)
end

--- A div that is no more than a box, and can be the box of its part.
local function is_box(block)
  if block.t ~= 'Div' or S.kind(block.identifier) or asks(block) then return false end
  return not block.classes:find_if(function(class)
    return class:match('^callout') or class:match('^panel%-') or class == 'proof' or class == 'remark'
      or class == 'solution'
  end)
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

--- Code stands above a panel, wherever in it it was written; blocks of it are joined.
local function lift(block, notes)
  return block:walk({
    CodeBlock = function(code)
      if not is_code(code) then return nil end
      local last = notes[#notes]
      if last and last.t == 'CodeBlock' and last.classes == code.classes then
        last.text = last.text .. '\n' .. code.text
        notes[#notes] = last
      else
        notes:insert(code)
      end
      return {}
    end,
  })
end

--- Part blocks into code that stands above the panel, and cells; a heading goes into the
--- cell of what follows it.
local function partition(blocks)
  local cells, notes, heading = pandoc.List(), pandoc.List(), nil
  local function add(block)
    local box = is_box(block) and block or pandoc.Div({ block })
    if heading then box.content:insert(1, heading) end
    heading = nil
    cells:insert(box)
  end
  for _, block in ipairs(blocks) do
    if is_code(block) then
      lift(pandoc.Div({ block }), notes)
    elseif is_note(block) then
      notes:insert(block)
    elseif block.t == 'Header' then
      heading = block
    elseif has_image(block) then
      add_images(block, add)
    elseif block.t == 'Div' then
      add(lift(block, notes))
    elseif block.t ~= 'Para' or pandoc.utils.stringify(block):match('%S') then
      add(block)
    end
  end
  return notes, cells
end

-- --------------------------------------------------------------------- rows
--- What a cell holds says where it stands, if its author doesn't.
local function alignment(box)
  local found = 'left'
  box:walk({ Image = function() found = 'center' end, Table = function() found = 'center' end })
  return found
end

local function holds_label(box)
  local found = false
  local function look(element) found = found or S.floats[S.kind(element.identifier)] ~= nil end
  box:walk({ Div = look, Image = look, Table = look, Figure = look })
  return found
end

local function cell(box, width, align, sub)
  local basis = width.share and ('%.1f%%'):format(width.share * 100) or width.size
  box.classes:insert('quarto-layout-cell')
  if sub and holds_label(box) then box.classes:insert('quarto-layout-cell-subref') end
  box.attributes.style = '--share: ' .. basis .. ';justify-content: ' .. (ALIGN[align] or ALIGN[alignment(box)]) .. ';'
  local function sized(image)
    if (image.attributes.width or ''):match('%%$') then image.attributes.width = nil end
    return image
  end
  return asked_width(box.content) and box:walk({ Image = sized }) or box
end

--- Lay the parts of a div out; returns what stands above the panel, and its rows.
function M.panel(div, blocks)
  local notes, cells = partition(blocks)
  local align, valign = S.take(div, 'layout-align'), S.take(div, 'layout-valign')
  local sub = S.floats[S.kind(div.identifier)] ~= nil
  local rows, at = pandoc.List(), 1
  for _, widths in ipairs(plan(div, cells)) do
    if at > #cells then break end
    local row = pandoc.List()
    for _, width in ipairs(widths) do
      if width.gap then
        local gap = cell(pandoc.Div({}), width)
        gap.classes:insert(1, 'quarto-figure-spacer')
        row:insert(gap)
      elseif cells[at] then
        row:insert(cell(cells[at], width, align, sub))
        at = at + 1
      end
    end
    local classes = { 'quarto-layout-row', valign and 'quarto-layout-valign-' .. valign or nil }
    rows:insert(pandoc.Div(row, pandoc.Attr('', classes)))
  end
  return notes, rows
end

return M
