-- Equations: `$$ … $$ {#eq-x}` gets a number and an id; bare TeX environments are formulas.

local S = require 'state'
local M = {}

local function equation(math, id)
  local number = S.count('eq')
  S.label(id, 'eq', number)
  local text = math.text:gsub('%s+$', '')
  math.text = text .. ' \\tag{' .. number .. '}'
  return pandoc.Span({ math }, pandoc.Attr(id))
end

local function display_environment(inline)
  if inline.t ~= 'RawInline' or not inline.format:match('tex') then return inline end
  local name = inline.text:match('^\\begin{(%a+%*?)}')
  return name and pandoc.Math('DisplayMath', inline.text) or inline
end

--- Find `$$ … $$ {#eq-x}` in a paragraph, and bare TeX environments.
function M.equations(para)
  local out, changed = pandoc.Inlines({}), false
  for _, inline in ipairs(para.content) do
    local shown = display_environment(inline)
    changed = changed or shown ~= inline
    local id = inline.t == 'Str' and inline.text:match('^{#(eq%-[^%s}]+)}')
    local at = #out
    if at > 0 and (out[at].t == 'Space' or out[at].t == 'SoftBreak') then at = at - 1 end
    if id and at > 0 and out[at].t == 'Math' and out[at].mathtype == 'DisplayMath' then
      local rest = inline.text:match('^{#eq%-[^%s}]+}(.*)$')
      while #out > at do out:remove(#out) end
      out[at] = equation(out[at], id)
      if rest ~= '' then out:insert(pandoc.Str(rest)) end
      changed = true
    else
      out:insert(shown)
    end
  end
  if not changed then return nil end
  para.content = out
  return para
end

function M.RawBlock(block)
  if block.format:match('tex') and block.text:match('^%s*\\begin{') then
    return pandoc.Para({ pandoc.Math('DisplayMath', block.text) })
  end
end

return M
