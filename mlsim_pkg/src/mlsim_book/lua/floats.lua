-- Figures, tables and listings that carry a label and a number, images that carry
-- none, and the panels that lay several of them out.

local S = require 'state'
local images = require 'images'
local M = {}

local parent -- the label of the figure whose parts are being visited
local parts = 0

local function is_blank(blocks)
  return pandoc.utils.stringify(blocks):match('^%s*$') ~= nil
end

-- -------------------------------------------------------------------- floats
local function caption_blocks(id, kind, number, caption, where, sub)
  local uncaptioned = #caption == 0
  local class = 'quarto-float-caption-' .. where
    .. (sub and ' quarto-subfloat-caption quarto-subfloat-' or ' quarto-float-caption quarto-float-') .. kind
  local head
  if sub then
    head = '(' .. sub .. ')' .. (uncaptioned and '' or ' ')
  else
    head = S.escape(S.words[kind]) .. '&nbsp;' .. number .. (uncaptioned and '' or S.escape(S.delimiter) .. ' ')
  end
  return {
    S.raw('<figcaption class="' .. class .. (uncaptioned and ' quarto-uncaptioned' or '') .. '" id="caption-'
      .. id .. '">' .. head),
    pandoc.Plain(caption),
    S.raw('</figcaption>'),
  }
end

--- Wrap content and caption in the elements of a float.
local function float(attr, kind, number, content, caption, options)
  local id, sub = attr.identifier, options.sub
  local where = options.where or (kind == 'fig' and 'bottom' or 'top')
  local name = sub and 'quarto-subfloat-' or 'quarto-float-'
  local inner = S.join({ S.raw('<div aria-describedby="caption-' .. id .. '">') }, content, { S.raw('</div>') })
  local cap = caption_blocks(id, kind, number, caption, where, sub)
  inner = where == 'top' and S.join(cap, inner) or S.join(inner, cap)
  local classes = S.join(attr.classes, { 'quarto-float', 'quarto-figure',
    'quarto-figure-' .. (options.align or 'center'), 'anchored' })
  local margin = attr.classes:includes('column-margin')
  if margin then classes = classes:filter(function(class) return class ~= 'column-margin' end) end
  local div = pandoc.Div(
    S.join({ S.raw('<figure class="quarto-float ' .. name .. kind .. ' figure">') }, inner, { S.raw('</figure>') }),
    pandoc.Attr(id, classes, attr.attributes))
  if not margin then return div end
  return pandoc.Div({ div }, pandoc.Attr('', { 'no-row-height', 'column-margin', 'column-container' }))
end

--- Number and label a float; a part of a figure is counted (a), (b), … in it.
local function numbered(id, kind)
  if parent then
    parts = parts + 1
    local letter = string.char(96 + parts)
    S.label(id, kind, parent.number .. ' (' .. letter .. ')', { parent = parent.id })
    return nil, letter
  end
  local number = S.count(kind)
  S.label(id, kind, number)
  return number
end

local function location(element, kind)
  local own = S.take(element, kind .. '-cap-location') or S.take(element, 'cap-location')
  return own == 'margin' and 'bottom' or own or S.config[kind .. '_cap_location']
end

-- ------------------------------------------------------- figures of one image
local function float_image(image, id, caption, classes, link)
  local kind = S.kind(id)
  local number, sub = numbered(id, kind)
  local where = location(image, 'fig')
  local align
  image, align = images.dress(image, true)
  local margin = image.classes:includes('column-margin')
  S.remove_class(image, 'column-margin')
  image.classes:insert('figure-img')
  image.identifier = ''
  local shown = image
  if link then
    link.content = { image }
    shown = link
  end
  local attr = pandoc.Attr(id, margin and S.join(classes, { 'column-margin' }) or classes)
  return float(attr, kind, number, { pandoc.Plain({ shown }) }, caption, { align = align, sub = sub, where = where })
end

function M.Figure(figure)
  local caption = pandoc.utils.blocks_to_inlines(figure.caption.long)
  local image, link = images.image_of(figure.content)
  if not image then return nil end
  local id = figure.identifier ~= '' and figure.identifier or image.identifier
  if S.kind(id) then
    return float_image(image, id, caption, figure.classes, link), false
  end
  image.identifier = ''
  local div = images.plain_figure(image, caption, id)
  if link then div.content[2] = images.linked(image, link) end
  return div, false
end

--- A paragraph that is one image: a float if labelled, a linked figure, or as it is.
function M.lone_image(para)
  local image, link = images.image_of({ para })
  if not image then return nil end
  if S.kind(image.identifier) then
    local caption = link and image.caption or pandoc.Inlines({})
    return float_image(image, image.identifier, caption, pandoc.List(), link), false
  end
  if link and #image.caption > 0 then
    local caption = image.caption
    local div = images.plain_figure(image, caption)
    div.content[2] = images.linked(image, link)
    return div, false
  end
end

M.image = function(image) return (images.dress(image, false)) end

-- ---------------------------------------------------------- labelled divs
local function own_caption(div, kind)
  local given = S.take(div, kind .. '-cap')
  if given then return S.markdown(given) end
  local last = div.content[#div.content]
  if last and last.t == 'Para' and #div.content > 1 and not images.image_of({ last }) then
    div.content:remove(#div.content)
    return last.content
  end
  return pandoc.Inlines({})
end

--- How many parts each row of `layout="[[1,1],[1]]"` holds.
local function row_lengths(layout)
  local lengths = {}
  for row in (layout or ''):gmatch('%[([%d%s.,-]+)%]') do
    local _, commas = row:gsub(',', '')
    table.insert(lengths, commas + 1)
  end
  return lengths
end

--- Lay the parts of a div out in rows of `ncol`, each in a cell of its own.
local function panel(div, blocks)
  local ncol = tonumber(S.take(div, 'layout-ncol')) or 1
  local nrow = tonumber(S.take(div, 'layout-nrow'))
  local given = row_lengths(S.take(div, 'layout'))
  local cells, notes = pandoc.List(), pandoc.List()
  for _, block in ipairs(blocks) do
    if block.t == 'CodeBlock' and block.classes:includes('cell-code') then
      notes:insert(block)
    elseif block.t == 'Para' and block.content:find_if(function(x) return x.t == 'Image' end) then
      for _, image in ipairs(block.content) do
        if image.t == 'Image' then cells:insert(#image.caption > 0
          and pandoc.Figure({ pandoc.Plain({ image }) }, { long = { pandoc.Plain(image.caption) } }, image.attr)
          or pandoc.Para({ image })) end
      end
    elseif not is_blank({ block }) or block.t ~= 'Para' then
      cells:insert(block)
    end
  end
  if nrow then ncol = math.ceil(#cells / nrow) end
  local content, row = pandoc.List(), pandoc.List()
  for i, cell in ipairs(cells) do
    row:insert(pandoc.Div({ cell }, pandoc.Attr('', { 'quarto-layout-cell' })))
    if #row == (given[#content + 1] or ncol) or i == #cells then
      content:insert(pandoc.Div(row, pandoc.Attr('', { 'quarto-layout-row' })))
      row = pandoc.List()
    end
  end
  return notes, content
end

--- Take a cell's code out of its blocks: it stands above the float, not in it.
local function split_code(blocks)
  local code, rest = pandoc.List(), pandoc.List()
  for _, block in ipairs(blocks) do
    (block.t == 'CodeBlock' and block.classes:includes('cell-code') and code or rest):insert(block)
  end
  return rest, code
end

local function laid_out(div)
  return div.attributes['layout-ncol'] or div.attributes['layout-nrow'] or div.attributes.layout
end

--- Mark the tables that a cell printed, as Quarto does.
local function cell_tables(blocks)
  return blocks:walk({
    Table = function(tbl)
      tbl.classes:insert('cell')
      return tbl
    end,
    RawBlock = function(raw)
      raw.text = raw.text:gsub('class="dataframe"', 'class="dataframe cell"')
      return raw
    end,
  })
end

--- Visit the parts of a figure with `parent` set, so that they count (a), (b), ….
function M.labelled_div(div, visit)
  local kind = S.kind(div.identifier)
  if kind ~= 'fig' and kind ~= 'tbl' and kind ~= 'lst' then
    if not laid_out(div) then return nil end
    local notes, rows = panel(div, div.content)
    div.classes:insert('quarto-layout-panel')
    div.content = S.join(notes, rows)
    return div
  end
  local caption = own_caption(div, kind)
  local where, align = location(div, kind), S.take(div, 'fig-align')
  local alt = S.take(div, 'fig-alt')
  local number, sub = numbered(div.identifier, kind)
  local blocks, notes = div.content, pandoc.List()
  if laid_out(div) then
    notes, blocks = panel(div, blocks)
    div.classes:insert('quarto-layout-panel')
  elseif div.classes:includes('cell') then
    blocks, notes = split_code(blocks)
  end
  if kind == 'tbl' then blocks, caption = M.adopt_table(pandoc.Blocks(blocks), caption) end
  local outer, outer_parts = parent, parts
  parent, parts = { id = div.identifier, number = number or '' }, 0
  blocks = visit(pandoc.Blocks(blocks))
  parent, parts = outer, outer_parts
  if kind == 'fig' then blocks = images.figure_images(blocks, alt) end
  if kind == 'tbl' and #caption > 0 and div.classes:includes('cell') then blocks = cell_tables(blocks) end
  local result = float(div.attr, kind, number, blocks, caption,
    { align = images.ALIGNED[align] and align, sub = sub, where = where })
  if not div.classes:includes('cell') then return result end
  return pandoc.Div(S.join(visit(pandoc.Blocks(notes)), { result }), pandoc.Attr('', { 'cell' }))
end

-- -------------------------------------------------------------------- tables
--- Take the caption of the first table below, where the div itself has none.
function M.adopt_table(blocks, caption)
  return blocks:walk({
    Table = function(tbl)
      local own = pandoc.utils.blocks_to_inlines(tbl.caption.long)
      if #own > 0 and #caption == 0 then
        caption = own
        tbl.caption = { long = {} }
      end
      return tbl
    end,
  }), caption
end

function M.Table(tbl)
  local id = tbl.identifier
  if S.kind(id) ~= 'tbl' then return images.dress_table(tbl) end
  local number, sub = numbered(id, 'tbl')
  local where = location(tbl, 'tbl')
  local caption = pandoc.utils.blocks_to_inlines(tbl.caption.long)
  tbl.caption, tbl.identifier = { long = {} }, ''
  local attr = pandoc.Attr(id)
  if tbl.classes:includes('column-margin') then
    S.remove_class(tbl, 'column-margin')
    attr.classes = pandoc.List({ 'column-margin' })
  end
  return float(attr, 'tbl', number, { images.dress_table(tbl) }, caption, { sub = sub, where = where })
end

--- A listing: a code block with a label and a caption.
function M.listing(block, content)
  local id, caption = S.take(block, 'lst-label') or block.identifier, S.take(block, 'lst-cap')
  if S.kind(id) ~= 'lst' then return nil end
  block.identifier = ''
  local number = S.count('lst')
  S.label(id, 'lst', number)
  local attr = pandoc.Attr(id, { 'listing' })
  return float(attr, 'lst', number, content, caption and S.markdown(caption) or pandoc.Inlines({}), {})
end

return M
