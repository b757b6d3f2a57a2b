-- Heartbeat and slice of a waiter grow with its distance from the head of the queue.

-- Returns for how many slices a waiter at this position, counted from 0, blocks before it asks again.
local function slices_at(place) return math.min(MOST_SLICES, 1 + math.floor(place / NEAR)) end

-- Returns the score in ALIVE of a heartbeat that begins now: its end, and a quarter of a ms for each slice after the first.
local function score(now, slices) return now + HEARTBEAT * slices + (slices - 1) / 4 end
local function slices_of(score) return 1 + score % 1 * 4 end

return {slices_at = slices_at, score = score, slices_of = slices_of}
