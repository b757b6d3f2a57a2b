-- Heartbeat and slice of a waiter grow with its distance from the head of the queue.

-- The number of slices for which a waiter at this position, counted from 0, blocks before it asks again.
local function slices_at(place) return math.min(MOST_SLICES, 1 + math.floor(place / NEAR)) end

-- The score in ALIVE: the end of a heartbeat that begins now. A quarter of a ms for each slice after the first shows its length.
local function score(now, slices) return now + HEARTBEAT * slices + (slices - 1) / 4 end
local function slices_of(score) return 1 + score % 1 * 4 end

return {slices_at = slices_at, score = score, slices_of = slices_of}
