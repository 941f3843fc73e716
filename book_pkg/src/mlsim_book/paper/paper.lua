-- One document made of all pages, read back from their HTML -> what EPUB and Typst show.
--
-- Folds are opened, buttons dropped, links between pages become links within the
-- document, tabs follow one another, and what only a screen can do goes.

local typst = FORMAT:match('typst') ~= nil
local told = io.open(os.getenv('MLSIM_BOOK_PAPER'), 'r')
local config = pandoc.json.decode(told:read('a'))
told:close()
local images = config.images or {}   -- source -> { path, width in pixels }
local refused = {} -- formulas that Typst can't set
for _, text in ipairs(config.refused or {}) do refused[text] = true end
local macros = config.macros or {}   -- \name -> its definition

local DROPPED = { 'screen-reader-only', 'visually-hidden', 'callout-icon-container',
  'callout-btn-toggle', 'code-annotation-gutter', 'code-annotation-gutter-bg', 'dark-content' }
local KEPT = { 'callout', 'cell-output', 'theorem', 'proof', 'csl-entry', 'references',
  'glossary-entry', 'number-source', 'column-margin', 'lower', 'paper-summary',
  'paper-number' }
local IN_TYPST = { ['cell-output'] = '#output[', ['csl-entry'] = '#entry[', ['paper-number'] = '#small[' }
local known = {}

local function raw(text) return pandoc.RawBlock('typst', text) end

local function raw_inline(text) return pandoc.RawInline('typst', text) end

local function has(element, names)
  for _, name in ipairs(names) do
    if element.classes:includes(name) then return name end
  end
end

local function quoted(text)
  return '"' .. text:gsub('\\', '\\\\'):gsub('"', '\\"'):gsub('%s+', ' ') .. '"'
end

-- ------------------------------------------------------------------- formulas
--- The group `{...}` or the single token at a place; and where it ends.
local function argument(text, at)
  at = text:find('%S', at) or at
  if text:sub(at, at) == '{' then
    local group = text:match('^%b{}', at)
    if group then return group:sub(2, -2), at + #group end
  end
  local token = text:match('^\\%a+', at) or text:sub(at, at)
  return token, at + #token
end

local function expand(text, name, definition)
  local start = 1
  for _ = 1, 200 do -- a macro that calls itself ends here
    local first, last = text:find(name, start, true)
    if not first then break end
    if text:sub(last + 1, last + 1):match('%a') then
      start = last + 1
    else
      local filled, at = definition, last + 1
      local count = 0
      for digit in definition:gmatch('#(%d)') do count = math.max(count, tonumber(digit)) end
      for i = 1, count do
        local given
        given, at = argument(text, at)
        filled = filled:gsub('#' .. i, (given:gsub('%%', '%%%%')))
      end
      text = text:sub(1, first - 1) .. '{' .. filled .. '}' .. text:sub(at)
      start = first
    end
  end
  return text
end

--- A formula in Typst's words of today: some that pandoc writes have other names there.
local set = {} -- formulas that were met before
local function in_typst(math)
  local key = math.mathtype .. math.text
  if set[key] then return raw_inline(set[key]) end
  local text = pandoc.write(pandoc.Pandoc({ pandoc.Plain({ math }) }), 'typst', { wrap_text = 'none' })
  text = text:gsub('%s+$', ''):gsub('%f[%a]sect%f[%A]', 'inter')
  set[key] = text:gsub('%f[%a](%a+)%.circle%f[%A]', '%1.o')
  return raw_inline(set[key])
end

local function formula(math)
  if refused[math.text] then return pandoc.Code(math.text) end
  for _ = 1, 3 do -- macros may use one another
    for name, definition in pairs(macros) do math.text = expand(math.text, name, definition) end
  end
  local tag = math.text:match('\\tag%*?%s*(%b{})')
  math.text = math.text:gsub('%s*\\tag%*?%s*%b{}', ''):gsub('\\label%s*%b{}', '')
  if not tag then return typst and in_typst(math) or math end
  local number = '(' .. tag:sub(2, -2):gsub('[{}$]', ''):gsub('\\text', '') .. ')'
  if not typst then
    return { math, pandoc.Span({ pandoc.Str(number) }, pandoc.Attr('', { 'equation-number' })) }
  end
  return { raw_inline('#numbered(' .. quoted(number) .. ')['), in_typst(math), raw_inline(']') }
end

-- --------------------------------------------------------------------- places
--- Give a heading the id of the section around it, which then has done its work.
local function section(div)
  local head = div.content[1]
  if not (div.classes:includes('section') and head and head.t == 'Header') then return nil end
  if head.identifier == '' then head.identifier = div.identifier end
  return div.content
end

--- Turn a link as the site has it into one within the document.
local function target_of(url, page)
  if url:match('^%a[%w+.-]*:') or url:match('^//') then return url end
  local path, id = url:match('^([^#]*)#?(.*)$')
  if path == '' then
    path = page
  else
    local folder = page:match('^(.*)/[^/]*$')
    path = pandoc.path.normalize(folder and folder .. '/' .. path or path)
    local parts = pandoc.List()
    for part in path:gmatch('[^/]+') do
      if part == '..' then parts:remove() elseif part ~= '.' then parts:insert(part) end
    end
    path = table.concat(parts, '/')
  end
  if not config.pages[path] then -- a file beside the pages: to be had from the site, if anywhere
    return config.site and config.site .. '/' .. path or '#' .. path
  end
  if id == '' then id = config.tops[path] or 'top' end
  return '#' .. config.pages[path] .. '--' .. id
end

local function rename(page)
  local prefix = config.pages[page]
  local function own(element)
    if element.identifier ~= '' then element.identifier = prefix .. '--' .. element.identifier end
    return element
  end
  return {
    Div = own, Span = own, Header = own, Figure = own, Table = own, Code = own, CodeBlock = own,
    Image = own,
    Link = function(link)
      link.target = target_of(link.target, page)
      return own(link)
    end,
  }
end

local function once(element)
  if element.identifier == '' then return nil end
  if known[element.identifier] then element.identifier = '' end
  known[element.identifier] = true
  return element
end

local function link(link)
  local place = link.target:match('^#(.*)$')
  if place and not known[place] then return link.content end
  link.attributes, link.classes = {}, {}
end

-- --------------------------------------------------------------------- blocks
local CALLOUTS = { note = true, tip = true, warning = true, important = true, caution = true }

local function callout(div)
  local kind = 'note'
  for _, class in ipairs(div.classes) do
    local named = class:match('^callout%-(%l+)$')
    if CALLOUTS[named] then kind = named end
  end
  local title, body = pandoc.List(), pandoc.List() -- in EPUB the title is the first of the body
  for _, block in ipairs(div.content) do
    local head = block.t == 'Div' and (block.classes:includes('callout-header') or block.classes:includes('callout-title'))
    if head and typst then title:extend(block.content) else body:insert(block) end
  end
  if typst then
    local parts = pandoc.List({ raw('#callout(' .. quoted(kind) .. ')[') })
    parts:extend(title)
    parts:insert(raw(']['))
    parts:extend(body)
    parts:insert(raw(']'))
    return pandoc.Div(parts, pandoc.Attr(div.identifier))
  end
  div.classes = pandoc.List({ 'callout', 'callout-' .. kind })
  div.attributes = {}
  return div
end

--- Tabs follow one another, each under its name.
local function tabs(div)
  if not div.classes:includes('panel-tabset') then return nil end
  local names, shown = pandoc.List(), pandoc.List()
  for _, block in ipairs(div.content) do
    if block.t == 'BulletList' and #names == 0 then
      for _, item in ipairs(block.content) do
        names:insert(pandoc.utils.blocks_to_inlines(item):walk({ Link = function(l) return l.content end }))
      end
    elseif block.t == 'Div' and block.classes:includes('tab-content') then
      for i, pane in ipairs(block.content) do
        if names[i] then shown:insert(pandoc.Para({ pandoc.Strong(names[i]) })) end
        shown:insert(pane)
      end
    else
      shown:insert(block)
    end
  end
  return shown
end

local function Div(div)
  if has(div, DROPPED) then return {} end
  if div.classes:includes('callout') then return callout(div) end
  if div.classes:includes('paper-page') then return nil end
  local name = has(div, KEPT)
  if div.classes:includes('callout-header') then
    if typst then return nil end
    div.classes, div.attributes = { 'callout-title' }, {}
    return div
  end
  if not name and (div.identifier == '' or div.classes:includes('sourceCode')) then return div.content end
  if name and typst and IN_TYPST[name] then
    div.content:insert(1, raw(IN_TYPST[name]))
    div.content:insert(raw(']'))
  end
  div.classes, div.attributes = name and { name } or {}, name == 'references' and { role = 'list' } or {}
  return div
end

local function CodeBlock(block)
  local language
  for _, class in ipairs(block.classes) do
    if class ~= 'sourceCode' and not class:match('^code%-') and class ~= 'cell-code' then
      language = language or class
    end
  end
  return pandoc.CodeBlock(block.text, pandoc.Attr('', language and { language } or {}))
end

--- Formulas come as code, so that reading them changes nothing in them.
local function Code(code)
  local kind = has(code, { 'paper-inline', 'paper-display' })
  if not kind then return pandoc.Code(code.text) end
  return formula(pandoc.Math(kind == 'paper-inline' and 'InlineMath' or 'DisplayMath', code.text))
end

local function Image(image)
  local found = images[image.src]
  local alt = pandoc.utils.stringify(image.caption)
  if not found then
    local text = alt ~= '' and alt or image.src
    return image.src:match('^https?:') and pandoc.Link(text, image.src) or pandoc.Emph('[' .. text .. ']')
  end
  local width = tonumber((tostring(image.attributes.width or ''):match('^([%d.]+)p?x?$'))) or found.width
  local percent = tostring(image.attributes.width or ''):match('^([%d.]+%%)$')
  if not typst then
    return pandoc.Image(image.caption, found.path, '', percent and { width = percent } or {})
  end
  local size = percent or (width and width < 600 and ('%gpt'):format(width * 0.75)) or '100%'
  local path = '/' .. found.path
  return raw_inline('#box(image(' .. quoted(path) .. ', width: ' .. size .. ', alt: ' .. quoted(alt) .. '))')
end

local function Span(span)
  if has(span, DROPPED) then return {} end
  if span.classes:includes('kbd') then return pandoc.Code(pandoc.utils.stringify(span)) end
  if span.identifier == '' then return span.content end
  span.classes, span.attributes = {}, {}
  return span
end

local function bare(element)
  if has(element, DROPPED) then return {} end
  element.classes, element.attributes = {}, {}
  return element
end

local function Header(header)
  local part, title = header.classes:includes('part'), header.classes:includes('chapter-title')
  header.classes, header.attributes = { 'unnumbered' }, {}
  if part and typst then
    return { raw('#part['), pandoc.Plain(header.content), raw(']') }
  end
  if title and typst then return { raw('#pagebreak(weak: true)'), header } end
  return header
end

local function Table(tbl)
  tbl.attributes, tbl.classes = {}, {}
  if not typst then return tbl end
  -- every column as wide as its text needs: widths in percent leave long words no room
  for _, spec in ipairs(tbl.colspecs) do spec[2] = nil end
  return tbl
end

function Pandoc(doc)
  doc = doc:walk({
    traverse = 'topdown',
    Div = function(div)
      if not div.classes:includes('paper-page') then return nil end
      return div:walk(rename(div.attributes['page'] or div.attributes['data-page'])).content, false
    end,
  })
  doc = doc:walk({ traverse = 'topdown', Div = section })
  doc = doc:walk({ traverse = 'topdown', Div = tabs })
  doc = doc:walk({ Div = Div, Span = Span, Code = Code, CodeBlock = CodeBlock, Image = Image,
    Header = Header, Table = Table, Figure = bare })
  doc = doc:walk({ traverse = 'topdown', Div = once, Span = once, Header = once, Figure = once, Table = once })
  return doc:walk({ Link = link })
end
