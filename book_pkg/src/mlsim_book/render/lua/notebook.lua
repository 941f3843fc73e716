-- Writer: a page's Markdown -> JSON, a list of {markdown = "..."} and {cell = n}.
--
-- Jupyter and Colab show `:::` as it is written, so nothing of Quarto may be left:
-- callouts become quotes, folded ones <details>, tabs headings; references and
-- citations become text, equations get \tag, links to pages become absolute.
-- Placeholders `::: {.book-cell cell="n"}` say where the code cells stand; a code
-- block of class `notebook-cell` becomes a cell that only the notebook has.
-- The settings come as JSON in the file that BOOK_NOTEBOOK names.

local stringify = pandoc.utils.stringify
local settings
local flatten -- below; divs call it for what they hold

local WORDS = { note = 'Note', tip = 'Tip', warning = 'Warning', important = 'Important', caution = 'Caution' }
local OUT = 'commonmark+pipe_tables+strikeout+tex_math_dollars+raw_html'

local function read_settings()
  local file = assert(io.open(os.getenv('BOOK_NOTEBOOK')))
  settings = pandoc.json.decode(file:read('a'), false)
  file:close()
end

-- ------------------------------------------------------------------ inlines
local function label_text(citation)
  local id = citation.id:sub(1, 1):lower() .. citation.id:sub(2)
  local text = settings.labels[id]
  if not text then return nil end
  if citation.mode == 'SuppressAuthor' then
    text = text:match('%S+$')
  elseif #citation.prefix > 0 then
    text = stringify(citation.prefix) .. ' ' .. text:match('%S+$')
  end
  return pandoc.Str((text:gsub(' ', '\u{a0}')))
end

-- pandoc reads `@eq-a [@book]` as one citation of both: labels go first, books after
local function reference(cite)
  local pieces, books = pandoc.List(), pandoc.List()
  for _, citation in ipairs(cite.citations) do
    local text = label_text(citation)
    if text then
      if #pieces > 0 then pieces:extend({ pandoc.Str(','), pandoc.Space() }) end
      pieces:insert(text)
      for _, inline in ipairs(citation.suffix) do pieces:insert(inline) end
    else
      books:insert(citation)
    end
  end
  if #pieces == 0 then return nil end
  if #books > 0 then
    pieces:insert(pandoc.Space())
    pieces:insert(pandoc.Cite({}, books))
  end
  return pieces
end

-- A number that opens on the page is the plain number here
local function plain_number(span)
  if span.classes:includes('opens') then
    return span.content:filter(function(inline) return inline.t ~= 'RawInline' end)
  end
end

local function absolute(target)
  if target:match('^%a[%w+.-]*:') or target:match('^//') then return target end
  if not settings.site or target:match('^#') then return nil end
  local path = pandoc.path.normalize(pandoc.path.join({ settings.folder, target }))
  while path:match('[^/.]+/%.%./') do path = path:gsub('[^/.]+/%.%./', '', 1) end
  return settings.site .. (path:gsub('%.qmd', '.html'))
end

local function link(element)
  element.target = absolute(element.target) or ''
  if element.target == '' then return element.content end
  element.attr = pandoc.Attr()
  return element
end

local function image(element)
  local target = absolute(element.src)
  if not target then return element.caption end
  return pandoc.Image(element.caption, target)
end

local function note(element)
  local inlines = pandoc.utils.blocks_to_inlines(element.content)
  inlines:insert(1, pandoc.Str(' ('))
  inlines:insert(pandoc.Str(')'))
  return inlines
end

-- `$$ ... $$ {#eq-x}`: the label is text behind the formula
local function tag_equations(inlines)
  for index, element in ipairs(inlines) do
    if element.t == 'Math' and element.mathtype == 'DisplayMath' then
      local at = inlines[index + 1]
      local after = (at and (at.t == 'Space' or at.t == 'SoftBreak')) and index + 2 or index + 1
      local id = inlines[after] and inlines[after].t == 'Str' and inlines[after].text:match('^{#(eq%-[%w_-]+)}$')
      if id then
        local number = (settings.labels[id] or ''):match('[%d.]+%)?$') or ''
        element.text = element.text:gsub('%s+$', '') .. ' \\tag{' .. number:gsub('%)', '') .. '}'
        for _ = index + 1, after do inlines:remove(index + 1) end
      end
    end
  end
  return inlines
end

-- ------------------------------------------------------------------- blocks
local function bold(inlines)
  local plain = pandoc.Inlines(inlines):walk({ Strong = function(strong) return strong.content end })
  return pandoc.Para({ pandoc.Strong(plain) })
end

local function labelled(id, caption)
  local text = settings.labels[id]
  local inlines = pandoc.List(caption or {})
  if text then
    local head = pandoc.List({ pandoc.Str(text .. (#inlines > 0 and ':' or '')) })
    if #inlines > 0 then head:insert(pandoc.Space()) end
    inlines = head .. inlines
  end
  return inlines
end

local function holds_cell(block)
  local found = false
  block:walk({ Div = function(div) found = found or div.classes:includes('book-cell') end })
  return found
end

local function take_title(div)
  local given = div.attributes['title']
  if given then return pandoc.utils.blocks_to_inlines(pandoc.read(given, 'markdown').blocks) end
  local first = div.content[1]
  if first and first.t == 'Header' then
    div.content:remove(1)
    return first.content
  end
end

local function callout(div, kind, out)
  local title = take_title(div) or { pandoc.Str(WORDS[kind] or kind) }
  if settings.labels[div.identifier] then title = labelled(div.identifier, title) end
  if div.attributes['collapse'] and not holds_cell(div) then
    local summary = pandoc.write(pandoc.Pandoc({ pandoc.Plain(title) }), 'html', { html_math_method = 'mathjax' })
    out:insert(pandoc.RawBlock('html', '<details>\n<summary>' .. summary .. '</summary>'))
    flatten(div.content, out)
    out:insert(pandoc.RawBlock('html', '</details>'))
  elseif holds_cell(div) then
    out:insert(bold(title))
    flatten(div.content, out)
  else
    local inner = pandoc.Blocks({ bold(title) })
    flatten(div.content, inner)
    out:insert(pandoc.BlockQuote(inner))
  end
end

local function theorem(div, out)
  local title = take_title(div)
  local head = pandoc.Inlines({ pandoc.Str(settings.labels[div.identifier]) })
  if title then head:extend({ pandoc.Str(':'), pandoc.Space() }); head:extend(title) end
  out:insert(bold(head))
  flatten(div.content, out)
end

-- A figure or table in a div: its caption is the last paragraph
local function float(div, out)
  local last = div.content[#div.content]
  local caption
  if last and (last.t == 'Para' or last.t == 'Plain') and #div.content > 1 then
    caption = last.content
    div.content:remove(#div.content)
  end
  flatten(div.content, out)
  out:insert(pandoc.Para({ pandoc.Emph(labelled(div.identifier, caption)) }))
end

local function hidden(div)
  local when, unless = div.attributes['when-format'], div.attributes['unless-format']
  local ours = function(name) return name == 'html' or name == 'html:js' or name == 'ipynb' end
  local holds = (not when or ours(when)) and (not unless or not ours(unless))
  if div.classes:includes('content-visible') then return not holds end
  return div.classes:includes('content-hidden') and (holds or not (when or unless))
end

local function div_block(div, out)
  local kind
  for _, class in ipairs(div.classes) do kind = kind or class:match('^callout%-(%a+)$') end
  local prefix = div.identifier:match('^(%a+)%-')
  if div.classes:includes('book-cell') or hidden(div) then
    if div.classes:includes('book-cell') then out:insert(div) end
  elseif kind then
    callout(div, kind, out)
  elseif prefix == 'fig' or prefix == 'tbl' then
    float(div, out)
  elseif settings.labels[div.identifier] then
    theorem(div, out)
  else
    flatten(div.content, out)
  end
end

local function table_block(block, out)
  local caption = pandoc.utils.blocks_to_inlines(block.caption.long)
  local id = block.identifier
  local last = caption[#caption]
  if last and last.t == 'Str' and last.text:match('^{#tbl%-') then
    id = last.text:match('^{#([%w_-]+)')
    caption:remove(#caption)
    if #caption > 0 and caption[#caption].t == 'Space' then caption:remove(#caption) end
  end
  block.caption = { long = {} }
  block.attr = pandoc.Attr()
  out:insert(block)
  if #caption > 0 then out:insert(pandoc.Para({ pandoc.Emph(labelled(id, caption)) })) end
end

local function figure(block, out)
  local id = block.identifier
  for _, inner in ipairs(block.content) do
    if inner.t == 'Plain' and inner.content[1] and inner.content[1].t == 'Image' then
      if id == '' then id = inner.content[1].identifier end
      inner.content[1].caption = {}
    end
    local shown = inner:walk({ Image = image })
    if stringify(shown) ~= '' or holds_image(shown) then out:insert(shown) end
  end
  local caption = pandoc.utils.blocks_to_inlines(block.caption.long)
  out:insert(pandoc.Para({ pandoc.Emph(labelled(id, caption)) }))
end

-- A list with cells in it: each item keeps its mark, what follows its cell does not
local function broken_list(list, out)
  for number, item in ipairs(list.content) do
    local head, rest = pandoc.Blocks({}), pandoc.Blocks({})
    for _, block in ipairs(item) do
      local part = (#rest > 0 or holds_cell(block)) and rest or head
      part:insert(block)
    end
    if list.t == 'OrderedList' then
      local start = list.listAttributes.start + number - 1
      out:insert(pandoc.OrderedList({ head }, { start, list.listAttributes.style, list.listAttributes.delimiter }))
    else
      out:insert(pandoc.BulletList({ head }))
    end
    flatten(rest, out)
  end
end

function holds_image(block)
  local found = false
  block:walk({ Image = function() found = true end })
  return found
end

--- Guesses stand in boxes of their own: what counts on is one list.
local function goes_on(list, before)
  if list.t ~= 'OrderedList' or not before or before.t ~= 'OrderedList' then return false end
  local first, second = before.listAttributes, list.listAttributes
  return first.start + #before.content == second.start and first.style == second.style
    and first.delimiter == second.delimiter
end

function flatten(blocks, out)
  for _, block in ipairs(blocks) do
    if block.t == 'Div' then
      div_block(block, out)
    elseif block.t == 'Table' then
      table_block(block, out)
    elseif block.t == 'Figure' then
      figure(block, out)
    elseif block.t == 'Header' then
      out:insert(pandoc.Header(block.level, block.content))
    elseif block.t == 'CodeBlock' and block.classes:includes('notebook-cell') then
      out:insert(block)
    elseif block.t == 'CodeBlock' then
      out:insert(pandoc.CodeBlock(block.text, pandoc.Attr('', { block.classes[1] })))
    elseif (block.t == 'BulletList' or block.t == 'OrderedList') and holds_cell(block) then
      broken_list(block, out)
    elseif block.t == 'BlockQuote' and holds_cell(block) then
      flatten(block.content, out)
    elseif goes_on(block, out[#out]) then
      local items = out[#out].content
      items:extend(block.content)
      out[#out].content = items
    elseif block.t == 'Para' and stringify(block):match('^{{<.*>}}$') then
      -- a shortcode such as pagebreak has no meaning here
    elseif block.t ~= 'RawBlock' or block.format == 'html' then
      out:insert(block)
    end
  end
end

-- ------------------------------------------------------------------- writer
local function cite_sources(doc)
  if #settings.bibliography == 0 then return doc end
  local has_cites = false
  doc:walk({ Cite = function() has_cites = true end })
  if not has_cites then return doc end
  doc.meta.bibliography = settings.bibliography
  doc.meta.csl = settings.csl or nil
  doc.meta['link-citations'] = false
  local before = #doc.blocks
  doc = pandoc.utils.citeproc(doc)
  local last = doc.blocks[#doc.blocks]
  if #doc.blocks > before and last.identifier == 'refs' then
    doc.blocks:insert(#doc.blocks, pandoc.Header(2, { pandoc.Str('References') }))
  end
  return doc
end

local inline_walk = {
  Link = link,
  Image = image,
  Note = note,
  Span = function(span) return span.content end,
  Inlines = tag_equations,
  RawInline = function(raw) if raw.format ~= 'html' then return {} end end,
}

function Writer(doc)
  read_settings()
  doc = doc:walk({ Span = plain_number, Cite = reference })
  doc = cite_sources(doc)
  local blocks = pandoc.Blocks({})
  flatten(doc.blocks, blocks)
  local items, run = pandoc.List(), pandoc.Blocks({})
  local function finish()
    if #run > 0 then
      local text = pandoc.write(pandoc.Pandoc(run:walk(inline_walk)), OUT, { wrap_text = 'none' })
      items:insert({ markdown = text })
    end
    run = pandoc.Blocks({})
  end
  for _, block in ipairs(blocks) do
    if block.t == 'Div' then
      finish()
      items:insert({ cell = tonumber(block.attributes['cell']) })
    elseif block.t == 'CodeBlock' and block.classes:includes('notebook-cell') then
      finish()
      items:insert({ code = block.text })
    else
      if block.t == 'Header' and block.level <= 3 then finish() end
      run:insert(block)
    end
  end
  finish()
  return pandoc.json.encode(items)
end
