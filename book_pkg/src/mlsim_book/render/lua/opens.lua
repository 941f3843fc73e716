-- Numbers that open: `[55.5 µs]{.opens opens="..."}` carries its own derivation as
-- percent-encoded Markdown. The page gets the plain number with the name of the
-- content; the content itself, once however often it is used, is told to Python.
--
-- Quarto proper knows nothing of this and shows what stands in the span: the number,
-- perhaps with a button of raw HTML around it, which is left out here. Where no button
-- can stand, in headings, links and alternative texts, this filter gives the plain number.

local S = require 'state'
local equations = require 'equations'
local images = require 'images'
local refs = require 'refs'
local M = {}

local WIDTH = 72 -- pandoc's: a pipe table with a longer line gets relative column widths
local found, by_id = pandoc.List(), {}

local function opens(span) return span.classes:includes('opens') end

--- Put plain numbers in the place of those that open.
M.plain = S.plain_numbers

local function decode(text)
  return (text:gsub('%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end))
end

-- ---------------------------------------------------------------- the number
local function Span(span)
  local encoded = opens(span) and S.take(span, 'opens')
  if not encoded or encoded == '' then return nil end
  local text = pandoc.utils.stringify(span.content)
  local markdown = decode(encoded)
  if not utf8.len(markdown) then
    S.note('what opens at ' .. text .. ' is no percent-encoded UTF-8: use urllib.parse.quote', 'opens=')
    return S.number(span)
  end
  local id = 'opens-' .. pandoc.utils.sha1(markdown):sub(1, 10)
  if not by_id[id] then
    by_id[id] = true
    found:insert({ id = id, text = text, markdown = markdown })
  end
  span.content = M.plain(S.number(span)) -- no button in a button
  span.attributes['opens'] = id
  return span, false
end

-- The hidden Markdown makes a table's source lines long, which is no reason to
-- stretch the table over the whole page.
local function Table(tbl)
  local any, widest = false, 0
  tbl:walk({ Span = function(span) any = any or opens(span) end })
  if not any then return nil end
  local bodies = pandoc.List(tbl.bodies):map(function(body) return body.body end)
  for _, rows in ipairs(S.join({ tbl.head.rows }, bodies, { tbl.foot.rows })) do
    for _, row in ipairs(rows) do
      local width = 1
      for _, cell in ipairs(row.cells) do
        width = width + 3 + utf8.len(pandoc.utils.stringify(cell.contents))
      end
      widest = math.max(widest, width)
    end
  end
  if widest > WIDTH then return nil end
  tbl.colspecs = pandoc.List(tbl.colspecs):map(function(spec) return { spec[1] } end)
  return tbl
end

local function made_plain(element)
  element.content = M.plain(element.content)
  return element, false
end

M.filter = {
  traverse = 'topdown',
  Span = Span,
  Table = Table,
  Header = made_plain,
  Link = made_plain,
  Image = function(image)
    image.caption = M.plain(image.caption)
    return image, false
  end,
}

-- --------------------------------------------------------------- the content
-- It is shown in a card, copied into the page while that is open: nothing in it
-- may carry an id, be a heading of the page, or land among the page's footnotes.
local function without_id(element)
  element.identifier = ''
  return element
end

local card = {
  Header = function(header) return pandoc.Para({ pandoc.Strong(header.content) }) end,
  Note = function(note)
    local inlines = pandoc.utils.blocks_to_inlines(note.content)
    return S.join({ pandoc.Str(' (') }, inlines, { pandoc.Str(')') })
  end,
  CodeBlock = function(block) return pandoc.CodeBlock(block.text) end,
  RawBlock = equations.RawBlock,
  Div = without_id,
  Span = without_id,
  Figure = without_id,
  Image = without_id,
  Table = function(tbl) return images.dress_table(without_id(tbl)) end,
}

local function rendered(markdown)
  local blocks = M.plain(pandoc.read(markdown, 'markdown').blocks)
  blocks = blocks:walk(card):walk(refs.filter)
  return pandoc.write(pandoc.Pandoc(blocks), 'html5', { wrap_text = 'none' })
end

--- Take what was rendered before: its citations are counted on from those before it.
local function taken(kept)
  local shift = #S.facts.cites
  for _, each in ipairs(kept.cites) do table.insert(S.facts.cites, each) end
  for _, each in ipairs(kept.refs) do table.insert(S.facts.refs, each) end
  return (kept.html:gsub('(<x%-cite data%-index=")(%d+)', function(tag, index)
    return tag .. math.tointeger(index) + shift
  end))
end

--- What the page's rendering before has left (see `render/opens.py`), by id.
local function known()
  local path = os.getenv('MLSIM_BOOK_OPENS')
  local file = path and io.open(path)
  if not file then return {} end
  local ok, kept = pcall(pandoc.json.decode, file:read('a'), false)
  file:close()
  return ok and type(kept) == 'table' and kept or {}
end

--- Tell Python what opens, as HTML with the same placeholders as the page. Called
--- when the page itself is done, so that its citations are counted first.
function M.tell()
  local kept = #found > 0 and known() or {}
  for _, each in ipairs(found) do
    local span = { #S.facts.cites, 0, #S.facts.refs, 0 }
    local html = kept[each.id] and taken(kept[each.id]) or rendered(each.markdown)
    span[2], span[4] = #S.facts.cites, #S.facts.refs
    table.insert(S.facts.opens, { id = each.id, text = each.text, html = html, span = span })
  end
end

return M
