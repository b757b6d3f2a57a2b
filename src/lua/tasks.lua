-- Work that is done once, as a waiter's or holder's line describes it.

-- Returns what the owner of a line does once, or nil: field of ONCE; span; asked, when it first asked; max, after how many failures it
-- gives up.
local function of(line)
  if not line or not line.once then return nil end
  return {field = line.once, span = line.span or 0, asked = line.asked or now, max = line.max}
end

-- Adds such work to a line, and returns the line.
local function add_to(line, work)
  line.once, line.span, line.asked, line.max = work.field, work.span, work.asked, work.max
  return line
end

return {of = of, add_to = add_to}
