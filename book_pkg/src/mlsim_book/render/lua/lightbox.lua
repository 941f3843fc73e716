-- Images that open in full: a link to the image itself, which `lightbox.js` shows over
-- the page. Figures get one where the book or page says `lightbox: true`, others by class.

local S = require 'state'
local M = {}

local auto = S.config.lightbox == true
local count = 0

local function opened(image)
  count = count + 1
  local group = S.take(image, 'group') or ('quarto-lightbox-gallery-' .. count)
  S.remove_class(image, 'lightbox')
  local title = pandoc.utils.stringify(image.caption)
  local description = S.take(image, 'description')
  local attributes = { { 'data-gallery', group } }
  if description then table.insert(attributes, { 'data-description', description }) end
  return pandoc.Link({ image }, image.src, title, pandoc.Attr('', { 'lightbox' }, attributes)), false
end

local function wanted(image, alone)
  if image.classes:includes('nolightbox') then return false end
  return image.classes:includes('lightbox') or (auto and (alone or image.classes:includes('figure-img')))
end

--- A cell says for all its images: `lightbox: true`, or a mapping such as `group: a`.
local function cell(div)
  local given = S.take(div, 'lightbox')
  if not given then return nil end
  local ok, value = pcall(pandoc.json.decode, given, false)
  if not ok then value = given ~= 'false' end
  return div:walk({
    Image = function(image)
      image.classes:insert(value and 'lightbox' or 'nolightbox')
      if type(value) == 'table' then image.attributes.group = value.group end
      return image
    end,
  })
end

M.filter = {
  traverse = 'topdown',
  Link = function() return nil, false end,
  Div = function(div) return div.classes:includes('cell') and cell(div) or nil end,
  Para = function(para)
    local only = #para.content == 1 and para.content[1]
    if not only or only.t ~= 'Image' or not wanted(only, true) then return nil end
    return pandoc.Para({ (opened(only)) }), false
  end,
  Image = function(image)
    if wanted(image, false) then return opened(image) end
  end,
}

return M
