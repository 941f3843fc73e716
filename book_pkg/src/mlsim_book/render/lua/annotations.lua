-- Code annotations: `x = 1  # <1>` in a block, and a numbered list right behind it.
-- The marks leave the code; the list becomes a definition list under it. Python puts
-- the numbers back into the highlighted lines (see postprocess).

local S = require 'state'
local M = {}

local cells = 0
local MARK = '%s*[#/%%-]+%s*<([%d]+)>%s*$'

--- Take the marks off a block. Returns note number -> list of its lines, or nil.
local function take_marks(block)
  local lines, notes, found, n = {}, {}, false, 0
  for line in (block.text .. '\n'):gmatch('(.-)\n') do
    n = n + 1
    local mark = line:match(MARK)
    if mark then
      found = true
      local number = math.floor(tonumber(mark))
      notes[number] = notes[number] or {}
      table.insert(notes[number], tostring(n))
      line = line:gsub(MARK, '')
    end
    table.insert(lines, line)
  end
  if not found then return nil end
  block.text = table.concat(lines, '\n')
  return notes
end

local function definitions(id, list, notes)
  local out = pandoc.List({ S.raw('<dl class="code-annotation-container-grid">') })
  for i, item in ipairs(list.content) do
    local where = notes[i] and table.concat(notes[i], ',') or ''
    out:insert(S.raw('<dt data-target-cell="' .. id .. '" data-target-annotation="' .. i .. '">' .. i
      .. '</dt><dd><span data-code-cell="' .. id .. '" data-code-lines="' .. where .. '" data-code-annotation="'
      .. i .. '">'))
    out:insert(pandoc.Plain(pandoc.utils.blocks_to_inlines(item)))
    out:insert(S.raw('</span></dd>'))
  end
  out:insert(S.raw('</dl>'))
  return out
end

local function annotate(block, list)
  local notes = take_marks(block)
  if not notes then return nil end
  cells = cells + 1
  local id = block.identifier ~= '' and block.identifier or ('annotated-cell-' .. cells)
  block.identifier = id
  block.classes:insert('code-annotation-code')
  local first = {}
  for number = 1, #list.content do
    if notes[number] then table.insert(first, number .. ':' .. notes[number][1]) end
  end
  block.attributes['annotations'] = table.concat(first, ' ')
  return definitions(id, list, notes)
end

--- The code block of a cell that is annotated, with its place in the cell.
local function code_of(div)
  if div.t ~= 'Div' or not div.classes:includes('cell') then return nil end
  for i, block in ipairs(div.content) do
    if block.t == 'CodeBlock' and block.classes:includes('cell-code') then return block, i end
  end
end

function M.Blocks(blocks)
  local out = pandoc.List()
  for _, block in ipairs(blocks) do
    local last, done = out[#out], false
    if block.t == 'OrderedList' and last then
      if last.t == 'CodeBlock' then
        local notes = annotate(last, block)
        if notes then
          out[#out] = last
          out:extend(notes)
          done = true
        end
      else
        local code, at = code_of(last)
        local notes = code and annotate(code, block)
        if notes then
          local content = S.join(last.content)
          content[at] = code
          content:insert(at + 1, pandoc.Div(notes, pandoc.Attr('', { 'cell-annotation' })))
          last.content = content
          out[#out] = last
          done = true
        end
      end
    end
    if not done then out:insert(block) end
  end
  return out
end

return M
