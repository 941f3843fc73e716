-- What the pages of a genuine Quarto need; the book's own engine does these things itself.

local function as_text(attribute) -- `&quot;` and such are read as HTML reads them
  return pandoc.utils.stringify(pandoc.read(attribute, 'html'))
end

--- Let Quarto resolve the citations in notes that numbers open to, as it does on the page.
function RawInline(raw)
  if raw.format ~= 'html' or not raw.text:find('data-cite="', 1, true) then return nil end
  local inlines, at = pandoc.Inlines({}), 1
  for from, citation, to in raw.text:gmatch('()<span data%-cite="([^"]*)">[^<]*</span>()') do
    inlines:insert(pandoc.RawInline('html', raw.text:sub(at, from - 1)))
    inlines:extend(pandoc.read('[' .. as_text(citation) .. ']', 'markdown').blocks[1].content)
    at = to
  end
  inlines:insert(pandoc.RawInline('html', raw.text:sub(at)))
  return inlines
end

--- A drawing says itself what it shows: its alternative text, where the page gives it none.
function Image(image)
  if not image.src:match('%.svg$') or image.attributes['fig-alt'] then return nil end
  local folder = pandoc.path.directory(quarto.doc.input_file)
  local file = io.open(pandoc.path.join({ folder, image.src }))
  if not file then return nil end
  local told = file:read(20000):match('^<svg[^>]*>%s*<title>[^<]*</title>%s*<desc>([^<]+)</desc>')
  file:close()
  if told then image.attributes['fig-alt'] = as_text(told) end
  return image
end

--- What our own pages make cards of would double the weight of a table here.
function Span(span)
  if span.classes:includes('opens') then return span.content end
end

--- Quarto folds the sidebar away beside what is wider than the text to the left.
function Div(div)
  div.classes = div.classes:map(function(class)
    return class == 'column-page' and 'column-page-right' or class
  end)
  return div
end

--- A chapter that has a notebook begins with a link to it.
function Pandoc(doc)
  if not quarto.doc.is_format('html:js') then return nil end
  local root = quarto.project.directory
  local page = pandoc.path.make_relative(quarto.doc.input_file, root)
  local name = 'notebooks/' .. pandoc.path.split_extension(page) .. '.ipynb'
  local file = io.open(pandoc.path.join({ root, name }))
  if not file then return nil end
  file:close()
  local link = pandoc.Link('Download notebook', quarto.project.offset .. '/' .. name)
  link.attributes.download = ''
  local first = doc.blocks[1]
  local below = first and first.t == 'Header' and first.level == 1 and 2 or 1
  doc.blocks:insert(below, pandoc.Para({ link }))
  return doc
end
