-- Callouts, tab sets, theorems and proofs, conditional content.

local S = require 'state'
local M = {}

-- ------------------------------------------------------------------ callouts
local CALLOUTS = {
  ['callout-note'] = { 'Note', 'nte' },
  ['callout-tip'] = { 'Tip', 'tip' },
  ['callout-warning'] = { 'Warning', 'wrn' },
  ['callout-important'] = { 'Important', 'imp' },
  ['callout-caution'] = { 'Caution', 'cau' },
  ['callout'] = { '', 'none' }, -- a box of no kind
}
local callouts = 0

local function callout_kind(div)
  local found
  for _, class in ipairs(div.classes) do
    if CALLOUTS[class] and class ~= 'callout' then return class end
    found = found or CALLOUTS[class] and class
  end
  return found
end

local function callout_title(div, word)
  local title = S.take(div, 'title')
  if title then return S.markdown(title) end
  local first = div.content[1]
  if first and first.t == 'Header' then
    div.content:remove(1)
    return first.content
  end
  return nil, word
end

local function callout_icon(div)
  return '<div class="callout-icon-container"><i class="callout-icon'
    .. (div.classes:includes('no-icon') and ' no-icon' or '') .. '"></i></div>'
end

local function callout_header(div, n, collapse, word, title, plain)
  local attributes = 'class="callout-header d-flex align-content-center'
  if collapse then
    local open = collapse == 'false'
    attributes = attributes .. (open and '' or ' collapsed') .. '" data-bs-toggle="collapse"'
      .. ' data-bs-target=".callout-' .. n .. '-contents" aria-controls="callout-' .. n
      .. '" aria-expanded="' .. tostring(open) .. '" role="button" tabindex="0'
  end
  local hidden = (plain or word == '') and '' or '<span class="screen-reader-only">' .. word .. '</span>'
  return {
    S.raw('<div ' .. attributes .. '">' .. callout_icon(div) .. '<div class="callout-title-container flex-fill">' .. hidden),
    pandoc.Plain(title),
    S.raw('</div>' .. (collapse and '<div class="callout-btn-toggle d-inline-block border-0 py-1 ps-1'
      .. ' pe-0 float-end"><i class="callout-toggle"></i></div>' or '') .. '</div>'),
  }
end

local function callout(div, class)
  local kind = CALLOUTS[class][2]
  local word = S.word(class .. '-title', CALLOUTS[class][1])
  local bare = class == 'callout'
  callouts = callouts + 1
  local collapse, appearance = S.take(div, 'collapse'), S.take(div, 'appearance')
  local icon = S.take(div, 'icon')
  appearance = appearance or S.config.callout_appearance or (bare and 'simple' or 'default')
  if icon == nil and (bare or S.config.callout_icon == false) then icon = 'false' end
  if #div.content == 0 then div.classes:insert('callout-empty-content') end
  if icon == 'false' or appearance == 'minimal' then
    div.classes:insert('no-icon')
  end
  local title, plain = callout_title(div, word)
  if S.kind(div.identifier) == kind then
    local number = S.count(kind)
    S.label(div.identifier, kind, number)
    local head = S.words[kind] .. '\u{a0}' .. number
    if title then
      title = S.join({ pandoc.Str(head .. S.delimiter), pandoc.Space() }, title)
    else
      title = { pandoc.Str(head) }
    end
  end
  local style = appearance == 'default' and 'default' or 'simple'
  local titled = title ~= nil or style == 'default'
  S.remove_class(div, class)
  div.classes = S.join({ 'callout', 'callout-style-' .. style, bare and 'callout-none' or class }, titled and { 'callout-titled' } or {}, div.classes)
  local body = pandoc.Div(div.content, pandoc.Attr('', { 'callout-body-container', 'callout-body' }))
  if not titled then
    div.content = { S.raw('<div class="callout-body d-flex">' .. callout_icon(div)), body, S.raw('</div>') }
    body.classes = { 'callout-body-container' }
    return div
  end
  local parts = pandoc.List(callout_header(div, callouts, collapse, word, title or { pandoc.Str(plain) }, plain))
  if collapse then
    local n = 'callout-' .. callouts
    local classes = { n .. '-contents', 'callout-collapse', 'collapse' }
    if collapse == 'false' then table.insert(classes, 'show') end
    body = pandoc.Div({ body }, pandoc.Attr(n, classes))
  end
  parts:insert(body)
  div.content = parts
  return div
end

-- ------------------------------------------------------------------ tab sets
local tabsets = 0

local function tabset(div)
  tabsets = tabsets + 1
  local number = tabsets
  local level, tabs, before = nil, pandoc.List(), pandoc.List()
  for _, block in ipairs(div.content) do
    if block.t == 'Header' and (level == nil or block.level == level) then
      level = block.level
      tabs:insert({ title = block.content, blocks = pandoc.List(), classes = block.classes })
    else
      (tabs[#tabs] and tabs[#tabs].blocks or before):insert(block)
    end
  end
  if #tabs == 0 then
    S.note('a panel-tabset without headings has no tabs', 'panel-tabset')
    return div
  end
  local style = div.classes:includes('nav-pills') and 'nav-pills' or 'nav-tabs'
  S.remove_class(div, 'nav-pills')
  local list = pandoc.List({ S.raw('<ul class="nav ' .. style .. '" role="tablist">') })
  local panes = pandoc.List()
  local _, first = tabs:find_if(function(tab) return tab.classes:includes('active') end)
  for i, tab in ipairs(tabs) do
    local id, on = 'tabset-' .. number .. '-' .. i, i == (first or 1)
    S.remove_class(tab, 'active')
    list:insert(S.raw('<li class="nav-item" role="presentation"><a class="nav-link' .. (on and ' active' or '')
      .. '" id="' .. id .. '-tab" data-bs-toggle="tab" data-bs-target="#' .. id .. '" role="tab" aria-controls="'
      .. id .. '" aria-selected="' .. tostring(on) .. '" href="#' .. id .. '">'))
    list:insert(pandoc.Plain(tab.title))
    list:insert(S.raw('</a></li>'))
    panes:insert(pandoc.Div(tab.blocks, pandoc.Attr(id, S.join(tab.classes, { 'tab-pane', on and 'active' or nil }),
      { { 'role', 'tabpanel' }, { 'aria-labelledby', id .. '-tab' } })))
  end
  list:insert(S.raw('</ul>'))
  div.content = S.join(before, list, { pandoc.Div(panes, pandoc.Attr('', { 'tab-content' })) })
  return div
end

-- ------------------------------------------------------- theorems and proofs
local THEOREMS = {
  thm = { 'theorem' }, lem = { 'theorem', 'lemma' }, cor = { 'theorem', 'corollary' },
  prp = { 'theorem', 'proposition' }, cnj = { 'theorem', 'conjecture' },
  def = { 'theorem', 'definition' }, exm = { 'theorem', 'example' }, exr = { 'theorem', 'exercise' },
  alg = { 'theorem', 'algorithm' },
}
local PROOFS = { proof = 'Proof', remark = 'Remark', solution = 'Solution' }
local PROOF_KINDS = { sol = 'solution', rem = 'remark' }

local function own_title(div)
  local name = S.take(div, 'name')
  if name then return S.markdown(name) end
  local first = div.content[1]
  if first and first.t == 'Header' then
    div.content:remove(1)
    return first.content
  end
end

local function set_title(div, inlines)
  local first = div.content[1]
  if first and (first.t == 'Para' or first.t == 'Plain') then
    first.content = S.join(inlines, first.content)
    div.content[1] = first
  else
    div.content:insert(1, pandoc.Para(inlines))
  end
  return div
end

local function theorem(div, kind)
  local number = S.count(kind)
  S.label(div.identifier, kind, number)
  local title = own_title(div)
  local head = pandoc.Inlines(S.words[kind] .. '\u{a0}' .. number)
  if title then head = pandoc.Inlines(S.join(head, { pandoc.Space(), pandoc.Str('(') }, title, { pandoc.Str(')') })) end
  for _, class in ipairs(THEOREMS[kind]) do S.remove_class(div, class) end
  div.classes = S.join(THEOREMS[kind], div.classes)
  local span = pandoc.Span({ pandoc.Strong(head) }, pandoc.Attr('', { 'theorem-title' }))
  return set_title(div, { span, pandoc.Space() })
end

local function proof(div, name, kind)
  local head = pandoc.Inlines(S.word('environment-' .. name .. '-title', PROOFS[name]))
  if kind then
    local number = S.count(kind)
    S.label(div.identifier, kind, number)
    head = pandoc.Inlines(S.words[kind] .. '\u{a0}' .. number)
  end
  local title = own_title(div)
  if title then head = pandoc.Inlines(S.join(head, { pandoc.Space(), pandoc.Str('(') }, title, { pandoc.Str(')') })) end
  S.remove_class(div, name)
  S.remove_class(div, 'proof')
  div.classes = S.join(name == 'proof' and { 'proof' } or { 'proof', name }, div.classes)
  local span = pandoc.Span({ pandoc.Emph(head), pandoc.Str('.'), pandoc.Space() }, pandoc.Attr('', { 'proof-title' }))
  return set_title(div, { span })
end

-- ------------------------------------------------------- conditional content
-- Names under which an author may mean a format; to Quarto, EPUB is HTML, too.
local FORMATS = {
  html = { html = true, html4 = true, html5 = true, ['html:js'] = true },
  epub = { html = true, epub = true, epub2 = true, epub3 = true },
  pdf = { pdf = true, latex = true, typst = true },
}

local CONDITIONS = {
  format = function(name) return FORMATS[S.config.format or 'html'][name] == true end,
  meta = function(name) return (S.config.flags or {})[name] == true end,
  profile = function(name) return pandoc.List(S.config.profiles or {}):includes(name) end,
}

--- Say whether a block or span shows in this format; nil when it sets no condition.
function M.visible(element)
  local shows = element.classes:includes('content-visible')
  if not shows and not element.classes:includes('content-hidden') then return nil end
  local met = true
  for name, test in pairs(CONDITIONS) do
    local when, unless = S.take(element, 'when-' .. name), S.take(element, 'unless-' .. name)
    if when then met = met and test(when) end
    if unless then met = met and not test(unless) end
  end
  return shows == met
end

--- Take conditional content out, or its wrapper off.
M.conditional = {
  Div = function(div)
    local visible = M.visible(div)
    if visible ~= nil then return visible and div.content or {} end
  end,
  Span = function(span)
    local visible = M.visible(span)
    if visible ~= nil then return visible and pandoc.Span(span.content) or {} end
  end,
  CodeBlock = function(block)
    local visible = M.visible(block)
    if visible == nil then return nil end
    S.remove_class(block, 'content-visible')
    S.remove_class(block, 'content-hidden')
    return visible and block or {}
  end,
}

--- Change a div by its class or label; nil leaves it to others.
function M.div(div)
  local class, kind = callout_kind(div), S.kind(div.identifier)
  if class then return callout(div, class) end
  if div.classes:includes('panel-tabset') then return tabset(div) end
  if THEOREMS[kind] then return theorem(div, kind) end
  if PROOF_KINDS[kind] then return proof(div, PROOF_KINDS[kind], kind) end
  for _, name in ipairs({ 'proof', 'remark', 'solution' }) do
    if div.classes:includes(name) then return proof(div, name) end
  end
end

return M
