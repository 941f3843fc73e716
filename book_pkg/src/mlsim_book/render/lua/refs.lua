-- Citations and cross-references leave this filter as placeholders. Python fills
-- them in once every page is known: <x-ref> with a label, <x-cite> with an index
-- into the page's list of citations.

local S = require 'state'
local M = {}

local inside_link = false

local function reference(citation)
  local key = citation.id
  local name = key:sub(1, 1):lower() .. key:sub(2)
  table.insert(S.facts.refs, name)
  local mode = citation.mode == 'SuppressAuthor' and 'bare' or 'full'
  local attributes = ' data-key="' .. S.escape(name) .. '" data-mode="' .. mode .. '"'
  if key ~= name then attributes = attributes .. ' data-capital="1"' end
  if inside_link then attributes = attributes .. ' data-plain="1"' end
  local prefix = #citation.prefix > 0 and S.html(citation.prefix) or ''
  local suffix = #citation.suffix > 0 and citation.mode ~= 'AuthorInText' and S.html(citation.suffix) or ''
  return { S.rawi('<x-ref' .. attributes .. ' data-suffix="' .. S.escape(suffix) .. '">' .. prefix .. '</x-ref>') }
end

local function cite(citations, content)
  local doc = pandoc.Pandoc({ pandoc.Plain({ pandoc.Cite(content, citations) }) })
  table.insert(S.facts.cites, pandoc.write(doc, 'json'))
  return { S.rawi('<x-cite data-index="' .. (#S.facts.cites - 1) .. '"></x-cite>') }
end

--- Turn a group into references, or into citations. Quarto drops citations that
--- share a group with a reference; so does this, but it says so.
function M.Cite(element)
  local out, others = pandoc.Inlines({}), pandoc.List()
  for _, citation in ipairs(element.citations) do
    if S.kind(citation.id) then
      if #out > 0 then out:extend({ pandoc.Str(S.ref_delimiter), pandoc.Space() }) end
      out:extend(reference(citation))
      local note = element.citations[1].mode == 'AuthorInText' and citation.suffix or {}
      if #note > 0 then
        out:extend({ pandoc.Space(), pandoc.Str('[') })
        out:extend(note)
        out:insert(pandoc.Str(']'))
      end
    else
      others:insert(citation)
    end
  end
  if #out == 0 then return cite(element.citations, element.content) end
  for _, citation in ipairs(others) do
    S.note('the citation @' .. citation.id .. ' is dropped (by Quarto too), because it shares a group with'
      .. ' a cross-reference: put a word or a comma between them', '@' .. citation.id)
  end
  return out
end

function M.Math(math)
  local kind = math.mathtype == 'DisplayMath' and 'display' or 'inline'
  return S.rawi('<span class="math ' .. kind .. '">' .. S.escape(math.text) .. '</span>')
end

--- A label in an attribute or alternative text can't hold an element: leave a mark.
function M.Image(image)
  image.caption = image.caption:walk({
    Cite = function(element)
      local first = element.citations[1]
      return S.kind(first.id) and pandoc.Str('\u{27e6}' .. first.id .. '\u{27e7}') or element.content
    end,
  })
  return image, false
end

function M.Link(link)
  inside_link = true
  link.content = link.content:walk({ Cite = M.Cite, Math = M.Math })
  inside_link = false
  return link, false
end

--- Replace citations, references and formulas, in reading order.
M.filter = { traverse = 'topdown', Cite = M.Cite, Math = M.Math, Image = M.Image, Link = M.Link }

return M
