-- Figures, tables and listings that carry a label and a number, images that carry
-- none, and the panels that lay several of them out.

local S = require 'state'
local columns = require 'columns'
local images = require 'images'
local layout = require 'layout'
local M = {}

local parent -- the label of the figure whose parts are being visited
local parts = 0

-- -------------------------------------------------------------------- floats
local function caption_blocks(id, kind, number, caption, where, sub)
  local uncaptioned = #caption == 0
  local class = 'quarto-float-caption-' .. where
    .. (sub and ' quarto-subfloat-caption quarto-subfloat-' or ' quarto-float-caption quarto-float-') .. kind
  local head
  if sub then
    head = '(' .. sub .. ')' .. (uncaptioned and '' or ' ')
  else
    head = S.escape(S.words[kind]) .. (S.glued[kind] and '' or '&nbsp;') .. number .. (uncaptioned and '' or S.escape(S.delimiter) .. ' ')
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
  local where = options.where or S.floats[kind]
  local name = sub and 'quarto-subfloat-' or 'quarto-float-'
  local inner = S.join({ S.raw('<div aria-describedby="caption-' .. id .. '">') }, content, { S.raw('</div>') })
  local cap = caption_blocks(id, kind, number, caption, where, sub)
  inner = where == 'top' and S.join(cap, inner) or S.join(inner, cap)
  if kind == 'lst' then options.align = 'left' end -- its lines are text
  local classes = S.join(attr.classes, kind == 'lst' and { 'listing' } or {}, { 'quarto-float', 'quarto-figure',
    'quarto-figure-' .. (options.align or 'center'), 'anchored' })
  if options.panel then -- as Quarto: no more than the class of a panel
    classes = attr.classes:filter(function(class) return class:match('^column%-') end)
    classes:insert('quarto-layout-panel')
    attr.attributes = {}
  end
  if where == 'margin' then classes:insert('margin-caption') end
  return pandoc.Div(
    S.join({ S.raw('<figure class="quarto-float ' .. name .. kind .. ' figure">') }, inner, { S.raw('</figure>') }),
    pandoc.Attr(id, classes, attr.attributes))
end

--- Number and label a float; a part of a figure is counted (a), (b), … in it.
local function numbered(id, kind)
  if parent then
    parts = parts + 1
    local letter = S.styled('subref', parts, 'alpha a')
    S.label(id, kind, parent.number .. ' (' .. letter .. ')', { parent = parent.id })
    return nil, letter
  end
  local number = S.count(kind)
  S.label(id, kind, number)
  return number
end

local function location(element, kind)
  local own = S.take(element, kind .. '-cap-location') or S.take(element, 'cap-location')
  return own or S.config[kind .. '_cap_location'] or S.config.cap_location
end

-- ------------------------------------------------------- figures of one image
--- Classes of an image alone; its others are its figure's too, as Quarto has it.
local OWN = { border = true, ['img-fluid'] = true, ['figure-img'] = true, lightbox = true }

local function float_image(image, id, caption, classes, link)
  local kind = S.kind(id)
  local number, sub = numbered(id, kind)
  local where = location(image, 'fig')
  local align
  image, align = images.dress(image, true)
  local placed = columns.take(image)
  image.classes:insert('figure-img')
  image.identifier = ''
  local shown = image
  if link then
    link.content = { image }
    shown = link
  end
  local shared = image.classes:filter(function(class) return not OWN[class] end)
  local attr = pandoc.Attr(id, S.join(classes, shared, placed))
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

--- Take a cell's code out of its blocks: it stands above the float, not in it.
local function split_code(blocks)
  local code, rest = pandoc.List(), pandoc.List()
  for _, block in ipairs(blocks) do
    (block.t == 'CodeBlock' and block.classes:includes('cell-code') and code or rest):insert(block)
  end
  return rest, code
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
  if not S.floats[kind] then
    if not layout.laid_out(div) then return nil end
    local notes, rows = layout.panel(div, div.content)
    div.classes:insert('quarto-layout-panel')
    div.content = visit(pandoc.Blocks(rows))
    return S.join(visit(pandoc.Blocks(notes)), { div })
  end
  local caption = own_caption(div, kind)
  local where, align = location(div, kind), S.take(div, 'fig-align')
  local alt = S.take(div, 'fig-alt')
  local number, sub = numbered(div.identifier, kind)
  local blocks, notes = div.content, pandoc.List()
  local panel, columns = layout.laid_out(div), div.attributes['layout-ncol']
  if kind == 'tbl' then blocks, caption = M.cell_captions(div, blocks, caption) end
  if panel then
    notes, blocks = layout.panel(div, blocks)
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
    { align = images.ALIGNED[align] and align, sub = sub, where = where, panel = panel })
  if not div.classes:includes('cell') then return result end
  if columns then return S.join(visit(pandoc.Blocks(notes)), { result }) end
  return pandoc.Div(S.join(visit(pandoc.Blocks(notes)), { result }), pandoc.Attr('', { 'cell' }))
end

-- -------------------------------------------------------------------- tables
--- The texts of an attribute that holds one, or a JSON list of them.
local function texts_of(value)
  if not value then return nil end
  if value:match('^%s*%[') then return pandoc.List(pandoc.json.decode(value, false)) end
  return pandoc.List({ value == 'true' and '' or value })
end

--- Give the tables of a cell the captions and labels that `tbl-subcap` says.
function M.cell_captions(div, blocks, caption)
  local subs = texts_of(S.take(div, 'tbl-subcap'))
  if not subs then return blocks, caption end
  local at = 0
  return pandoc.Blocks(blocks):walk({
    traverse = 'topdown',
    Table = function(tbl)
      at = at + 1
      tbl.identifier = div.identifier .. '-' .. at
      tbl.caption = { long = { pandoc.Plain(S.markdown(subs[at] or '')) } }
      return tbl, false
    end,
    RawBlock = function(raw)
      if raw.format ~= 'html' or not raw.text:match('<table') then return nil end
      at = at + 1
      local part = pandoc.Div({ raw }, pandoc.Attr(div.identifier .. '-' .. at))
      part.content:insert(pandoc.Para(S.markdown(subs[at] or '')))
      return part, false
    end,
  }), caption
end

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
  attr.classes = columns.take(tbl)
  return float(attr, 'tbl', number, { images.dress_table(tbl) }, caption, { sub = sub, where = where })
end

--- A listing: a code block with a label and a caption.
function M.listing(block, content)
  local id, caption = S.take(block, 'lst-label') or block.identifier, S.take(block, 'lst-cap')
  if S.kind(id) ~= 'lst' then return nil end
  block.identifier = ''
  local number = S.count('lst')
  S.label(id, 'lst', number)
  local attr = pandoc.Attr(id)
  return float(attr, 'lst', number, content, caption and S.markdown(caption) or pandoc.Inlines({}), {})
end

return M
