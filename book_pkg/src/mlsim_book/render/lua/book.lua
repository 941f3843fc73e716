-- One page of a book: Quarto's intermediate Markdown -> Quarto's own HTML.
--
-- Walks, in reading order: conditional content goes; numbers that open are noted;
-- structure is built and counted; citations, references and formulas become
-- placeholders. What Python needs besides (labels, headings, citations, title, what
-- opens) follows the page as a comment.

package.path = pandoc.path.join({ pandoc.path.directory(PANDOC_SCRIPT_FILE), '?.lua' }) .. ';' .. package.path

local S = require 'state'
local annotations = require 'annotations'
local blocks = require 'blocks'
local columns = require 'columns'
local code = require 'code'
local equations = require 'equations'
local floats = require 'floats'
local lightbox = require 'lightbox'
local opens = require 'opens'
local refs = require 'refs'

local structure -- the second walk; floats call it for their parts

-- ------------------------------------------------------------------ headings
local function section_number(header)
  local sections = S.sections
  for level = header.level + 1, 6 do sections[level] = 0 end
  sections[header.level] = sections[header.level] + 1
  if header.level == 1 and S.counts_by_chapter then S.counters = {} end
  local numbers = { S.chapter() }
  for level = 2, header.level do numbers[level] = tostring(math.floor(sections[level])) end
  return table.concat(numbers, '.')
end

local function is_numbered(header)
  return S.config.first and S.config.number_sections ~= false and not header.classes:includes('unnumbered')
    and header.level <= (S.config.number_depth or 6)
end

local function number_heading(header)
  if is_numbered(header) then
    local number = section_number(header)
    header.attributes['number'] = number
    return number
  end
end

local function Header(header)
  local number = number_heading(header)
  local kind = S.kind(header.identifier)
  local entry = { level = header.level, id = header.identifier, number = number or '',
    unlisted = header.classes:includes('unlisted'), chapter = header.attributes['x-title'] ~= nil }
  table.insert(S.facts.headings, entry)
  if kind == 'sec' then
    S.label(header.identifier, 'sec', number or '', { level = header.level, chapter = header.level == 1 })
  end
  if number then
    header.attributes['number'] = nil
    header.attributes['data-number'] = number
    local span = pandoc.Span({ pandoc.Str(number) }, pandoc.Attr('', { 'header-section-number' }))
    header.content = S.join({ span, pandoc.Space() }, header.content)
  end
  return header
end

-- ----------------------------------------------------------------- structure
local function Div(div)
  if div.identifier == 'refs' then
    S.facts.has_refs = true
    return S.raw('<x-refs></x-refs>'), false
  end
  if div.classes:includes('hidden') and div.classes:includes('cell') then return {} end
  local changed = blocks.div(div)
  if changed then return changed end
  local float = floats.labelled_div(div, function(list) return list:walk(structure) end)
  if float then return float, false end -- its content was visited
end

local function Para(para)
  local lone, descend = floats.lone_image(para)
  if lone then return lone, descend end
  return equations.equations(para)
end

structure = {
  traverse = 'topdown',
  Header = Header,
  Div = Div,
  Para = Para,
  Plain = function(plain) return equations.equations(plain) end,
  Figure = floats.Figure,
  Table = floats.Table,
  CodeBlock = code.CodeBlock,
  RawBlock = equations.RawBlock,
  Image = function(image) return floats.image(image) end,
}

--- `[64 cups]{.given kind="example"}`: HTML knows `kind`, but not on a span, nor on a guess's box.
local function given(element)
  if not (element.classes:includes('given') or element.classes:includes('guess')) then return nil end
  element.attributes['data-kind'] = S.take(element, 'kind')
  return element
end

-- ---------------------------------------------------------------- the chapter
--- Take the chapter's own heading off a page; the template shows it as the title.
local function take_title(doc)
  local title = doc.meta.title and pandoc.utils.blocks_to_inlines(
    pandoc.utils.type(doc.meta.title) == 'Blocks' and doc.meta.title or { pandoc.Plain(doc.meta.title) })
  local first = S.config.first
  if title then
    S.sections[1] = first or 0
    return title, {}
  end
  if S.config.index then
    S.sections[1] = (first or 1) - 1
    return nil
  end
  for i, block in ipairs(doc.blocks) do
    if block.t == 'Header' and block.level == 1 then
      doc.blocks:remove(i)
      S.sections[1] = first or 0
      local id = block.identifier
      if S.kind(id) == 'sec' then
        local number = is_numbered(block) and S.chapter() or ''
        S.label(id, 'sec', number, { level = 1, chapter = true })
      end
      return block.content, { id = id, classes = block.classes }
    end
  end
  S.sections[1] = first or 0
end

--- Render what the front matter says, for the title block.
local function metadata(doc)
  local shown = {}
  for _, name in ipairs({ 'subtitle', 'abstract', 'description' }) do
    local value = doc.meta[name]
    if value ~= nil then
      local list = pandoc.utils.type(value) == 'Blocks' and value or { pandoc.Plain(value) }
      shown[name] = pandoc.write(pandoc.Pandoc(pandoc.Blocks(list):walk(refs.filter)), 'html5')
    end
  end
  return shown
end

--- HTML of words alone, which needs no writer: a call of it takes a millisecond.
local function plain_html(inlines)
  for _, each in ipairs(inlines) do
    if each.t ~= 'Str' and each.t ~= 'Space' then return nil end
  end
  local text = pandoc.utils.stringify(inlines)
  return not text:find('[&<>"\']') and text or nil
end

local function heading_facts(doc)
  local at = 0
  doc:walk({
    traverse = 'topdown',
    Header = function(header)
      at = at + 1
      local content = header.content:walk({
        Link = function(link) return link.content end,
        Note = function() return {} end,
      })
      local entry = S.facts.headings[at]
      if entry and entry.id == header.identifier then
        entry.text = pandoc.utils.stringify(header.content)
        entry.html = plain_html(content) or S.html(content)
      end
    end,
  })
end

function Pandoc(doc)
  doc = doc:walk(blocks.conditional)
  doc = doc:walk({ Blocks = annotations.Blocks })
  doc = doc:walk({ Span = given, Div = given }):walk(opens.filter)
  local title, attr = take_title(doc)
  doc = doc:walk(columns.filter)
  doc = doc:walk(structure):walk(lightbox.filter)
  doc = doc:walk(refs.filter)
  heading_facts(doc)
  local facts = S.facts
  if title then
    title = opens.plain(pandoc.Inlines(title))
    local inlines = title:walk(refs.filter)
    facts.title = { html = S.html(inlines), text = pandoc.utils.stringify(title), id = attr.id or '',
      classes = attr.classes or {} }
  end
  facts.meta = metadata(doc)
  opens.tell()
  if doc.meta.nocite then
    local inlines = pandoc.Pandoc({ pandoc.Plain(pandoc.Inlines(doc.meta.nocite)) })
    facts.nocite = pandoc.write(inlines, 'json')
  end
  local told = pandoc.json.encode(facts):gsub('>', '\\u003e')
  doc.blocks:insert(S.raw('<!--mlsim-book-facts ' .. told .. '-->'))
  doc.meta = {}
  return doc
end
