-- What the other files share: the page's configuration, counters, the facts told
-- to Python (labels, headings, citations), and small helpers.
--
-- The configuration comes as JSON in the environment variable MLSIM_BOOK_PAGE;
-- metadata would parse every string as Markdown.

local M = {}

M.config = pandoc.json.decode(os.getenv('MLSIM_BOOK_PAGE') or '{}', false)
M.facts = { labels = {}, headings = {}, cites = {}, refs = {}, notes = {}, opens = {},
  has_refs = false }
M.counters = {}
M.sections = { 0, 0, 0, 0, 0, 0 }

local crossref = M.config.crossref or {}

-- kind -> word before the number in captions and titles
M.words = {
  fig = 'Figure', tbl = 'Table', lst = 'Listing', eq = 'Equation', sec = 'Section',
  thm = 'Theorem', lem = 'Lemma', cor = 'Corollary', prp = 'Proposition',
  cnj = 'Conjecture', def = 'Definition', exm = 'Example', exr = 'Exercise',
  alg = 'Algorithm', sol = 'Solution', rem = 'Remark', nte = 'Note', tip = 'Tip', wrn = 'Warning',
  imp = 'Important', cau = 'Caution',
}
local language = M.config.language or {}
for kind in pairs(M.words) do
  M.words[kind] = (M.config.words or {})[kind] or M.words[kind]
  M.words[kind] = crossref[kind .. '-title'] or M.words[kind]
end

-- kinds that are floats, with the place of their captions; a book may add its own
M.floats = { fig = 'bottom', tbl = 'top', lst = 'top' }
M.glued = {} -- kinds whose word and number have no space between
for _, own in ipairs(crossref.custom or {}) do
  M.words[own.key] = own['caption-prefix'] or own['reference-prefix'] or own.key
  M.floats[own.key] = own['caption-location'] or 'bottom'
  M.glued[own.key] = own['space-before-numbering'] == false
end
M.delimiter = crossref['title-delim'] or ':'
M.counts_by_chapter = crossref.chapters ~= false
M.ref_delimiter = crossref['ref-delim'] or ','

--- A word in the book's language, by Quarto's key for it; the English one if it has none.
function M.word(key, english) return language[key] or english end

--- The kind of a label ("fig" of "fig-x"), or nil for other ids.
function M.kind(id)
  local kind = (id or ''):match('^(%a+)%-.')
  kind = kind and kind:lower()
  return M.words[kind] and kind or nil
end

function M.escape(text)
  return (text:gsub('[&<>"]', { ['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;' }))
end

function M.raw(html) return pandoc.RawBlock('html', html) end
function M.rawi(html) return pandoc.RawInline('html', html) end

--- HTML of a list of inlines.
function M.html(inlines)
  return pandoc.write(pandoc.Pandoc({ pandoc.Plain(inlines) }), 'html5', { wrap_text = 'none' })
end

--- Put plain numbers in the place of those that open (see opens.lua).
function M.plain_numbers(list)
  return list:walk({
    Span = function(span)
      if span.classes:includes('opens') then return M.number(span) end
    end,
  })
end

--- What a number that opens reads as: without the button that it has for Quarto.
function M.number(span)
  return span.content:filter(function(inline) return inline.t ~= 'RawInline' end)
end

--- Inlines of a Markdown text, as it stands in an attribute.
function M.markdown(text)
  return M.plain_numbers(pandoc.utils.blocks_to_inlines(pandoc.read(text, 'markdown').blocks))
end

--- Put lists of blocks one after another.
function M.join(...)
  local out = pandoc.List()
  for _, list in ipairs({ ... }) do out:extend(list) end
  return out
end

--- The number of the running chapter ("1", "A"), nil in an unnumbered one.
function M.chapter()
  local first, chapter = M.config.first, math.floor(M.sections[1])
  if not first or chapter == 0 then return nil end
  return M.config.appendix and string.char(64 + chapter) or tostring(chapter)
end

--- A number as `crossref: labels:` (or `fig-labels:` of one kind) writes it: arabic,
--- "alpha a", "roman i", or the next of a list of the book's own.
function M.styled(kind, n, default)
  local style = crossref[kind .. '-labels'] or crossref.labels or default or 'arabic'
  if type(style) == 'table' then return tostring(style[(n - 1) % #style + 1]) end
  local first = style:match('^alpha%s+(%S)') or (style:match('^alpha') and 'a')
  if first then return utf8.char(utf8.codepoint(first) + n - 1) end
  if style:match('^roman') then
    local roman = pandoc.utils.to_roman_numeral(n)
    return style:match('i$') and roman:lower() or roman
  end
  return tostring(n)
end

--- Count one more of a kind, and say its number.
function M.count(kind)
  local n = (M.counters[kind] or 0) + 1
  M.counters[kind] = n
  local chapter = M.counts_by_chapter and M.chapter()
  local number = M.styled(kind, n)
  return chapter and (chapter .. '.' .. number) or number
end

--- Note a label. `extra` may hold level, title and chapter.
function M.label(id, kind, number, extra)
  local entry = { id = id, kind = kind, number = number }
  for _, key in ipairs({ 'level', 'title', 'chapter', 'parent' }) do
    if extra and extra[key] ~= nil then entry[key] = extra[key] end
  end
  table.insert(M.facts.labels, entry)
end

--- Tell the author about a source that will not render as meant.
function M.note(message, needle)
  table.insert(M.facts.notes, { message = message, needle = needle or '' })
end

--- Take an attribute away from an element and return it.
function M.take(element, name)
  local value = element.attributes[name]
  element.attributes[name] = nil
  return value
end

function M.remove_class(element, name)
  element.classes = element.classes:filter(function(class) return class ~= name end)
end

return M
