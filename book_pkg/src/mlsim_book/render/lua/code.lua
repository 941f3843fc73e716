-- Code blocks: folding, file names, line numbers, the copy button.

local S = require 'state'
local floats = require 'floats'
local M = {}

local OPTIONS = { 'code-fold', 'code-summary', 'code-overflow', 'code-line-numbers', 'filename' }

local function take_options(block)
  local options = {}
  for _, name in ipairs(OPTIONS) do options[name] = S.take(block, name) end
  return options
end

local function line_numbers(block, wanted)
  if wanted == nil then wanted = S.config.code_line_numbers and 'true' or 'false' end
  if wanted ~= 'false' then block.classes:insert('number-lines') end
end

local function folded(content, fold, summary)
  if fold == nil or fold == 'false' or fold == 'none' then return content end
  summary = summary or S.config.code_summary or S.word('code-summary', 'Code')
  return S.join({
    S.raw('<details class="code-fold"' .. (fold == 'show' and ' open=""' or '') .. '><summary>'),
    pandoc.Plain(S.markdown(summary)),
    S.raw('</summary>'),
  }, content, { S.raw('</details>') })
end

function M.CodeBlock(block)
  if block.classes:includes('diagram') then
    S.note('a ' .. block.classes[1] .. ' diagram is shown as its source: there is nothing here to draw it',
      '{' .. block.classes[1] .. '}')
  end
  local options = take_options(block)
  local listing = S.kind(block.attributes['lst-label'] or block.identifier) == 'lst'
  if #block.classes == 0 and not options.filename and not listing then return nil end
  line_numbers(block, options['code-line-numbers'])
  local wrap = options['code-overflow'] or S.config.code_overflow
  if wrap == 'wrap' then block.classes:insert('code-overflow-wrap') end
  local copies = #block.classes > 0 and S.config.code_copy ~= false
  local content = pandoc.List({ block })
  local lst = listing and function(inner) return pandoc.List({ floats.listing(block, inner) }) end
  if copies then
    block.classes:insert('code-with-copy')
    content = pandoc.List({ S.raw('<div class="code-copy-outer-scaffold">'), block,
      S.raw('<button class="code-copy-button" type="button" title="'
        .. S.escape(S.word('copy-button-tooltip', 'Copy to clipboard')) .. '" aria-label="'
        .. S.escape(S.config.english == false and S.word('copy-button-tooltip', '') or 'Copy code')
        .. '"></button></div>') })
  end
  if options.filename then
    local inner = content
    content = pandoc.List({ S.raw('<div class="code-with-filename"><div class="code-with-filename-file"><pre><strong>'
      .. S.escape(options.filename) .. '</strong></pre></div>') })
    content = S.join(content, inner, { S.raw('</div>') })
  end
  if lst then content = lst(content) end
  return folded(content, options['code-fold'], options['code-summary']), false
end

return M
