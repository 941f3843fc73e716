-- Images and tables as such: classes, alternative text, alignment, column widths.

local S = require 'state'
local columns = require 'columns'
local M = {}

M.ALIGNED = { left = true, right = true, center = true }

local function image_classes(image)
  if not (image.attributes.width and image.attributes.height) and not image.classes:includes('img-fluid') then
    image.classes:insert('img-fluid')
  end
  return image
end

--- Dress an image: its alternative text, classes, alignment. Returns image, align.
function M.dress(image, captioned)
  local align = S.take(image, 'fig-align')
  local alt = S.take(image, 'fig-alt')
  if alt then
    image.caption = pandoc.Inlines({ pandoc.Str(alt) })
  elseif captioned then
    S.take(image, 'alt')
  end
  image_classes(image)
  if image.title:match('^fig:') then image.title = image.title:sub(5) end
  return image, M.ALIGNED[align] and align or nil
end

--- Add a class to every image below a block, and give it its alternative text.
function M.figure_images(blocks, alt)
  return blocks:walk({
    Image = function(image)
      if alt and not image.attributes['fig-alt'] then image.attributes['fig-alt'] = alt end
      if not image.classes:includes('figure-img') then
        image = M.dress(image, false)
        image.classes:insert('figure-img')
      end
      return image
    end,
  })
end

function M.plain_figure(image, caption, id)
  local align
  local where = S.take(image, 'fig-cap-location') or S.take(image, 'cap-location') or S.config.fig_cap_location
    or S.config.cap_location
  local placed = columns.take(image)
  if where == 'margin' then placed:insert('margin-caption') end
  image, align = M.dress(image, true)
  image.classes:insert('figure-img')
  local body = pandoc.List({ S.raw('<figure class="figure">'), pandoc.Para({ image }) })
  if #caption > 0 then
    body:extend({ S.raw('<figcaption>'), pandoc.Plain(caption), S.raw('</figcaption>') })
  end
  body:insert(S.raw('</figure>'))
  local attr = pandoc.Attr(id or '', S.join({ 'quarto-figure', 'quarto-figure-' .. (align or 'center') }, placed))
  return pandoc.Div(body, attr)
end

--- A captioned image that is a link: the caption names the link, the image is silent.
function M.linked(image, link)
  if not link.attributes['aria-label'] then
    link.attributes['aria-label'] = pandoc.utils.stringify(image.caption)
    image.caption = {}
  end
  return pandoc.Para({ pandoc.Link({ image }, link.target, link.title, link.attr) })
end

function M.image_of(blocks)
  local first = blocks[1]
  if #blocks ~= 1 or (first.t ~= 'Plain' and first.t ~= 'Para') or #first.content ~= 1 then return nil end
  local only = first.content[1]
  if only.t == 'Image' then return only end
  if only.t == 'Link' and #only.content == 1 and only.content[1].t == 'Image' then return only.content[1], only end
end

-- -------------------------------------------------------------------- tables
local BOOTSTRAP = { striped = 'table-striped', hover = 'table-hover', bordered = 'table-bordered',
  borderless = 'table-borderless', active = 'table-active', sm = 'table-sm' }

local function widths(tbl)
  local given = S.take(tbl, 'tbl-colwidths')
  if not given and S.config.tbl_colwidths == false and S.config.format == 'html' then given = 'false' end
  if given == 'false' then
    tbl.colspecs = pandoc.List(tbl.colspecs):map(function(spec) return { spec[1] } end)
  end
  if not given or given == 'auto' or given == 'false' then return end
  local numbers, total = {}, 0
  for value in given:gmatch('[%d.]+') do
    table.insert(numbers, tonumber(value))
    total = total + tonumber(value)
  end
  total = math.max(total, 100)
  for i, spec in ipairs(tbl.colspecs) do
    if numbers[i] then tbl.colspecs[i] = { spec[1], numbers[i] / total } end
  end
end

function M.dress_table(tbl)
  widths(tbl)
  tbl.classes = tbl.classes:map(function(class) return BOOTSTRAP[class] or class end)
  for _, class in ipairs({ 'caption-top', 'table' }) do
    if not tbl.classes:includes(class) then tbl.classes:insert(class) end
  end
  return tbl
end

return M
