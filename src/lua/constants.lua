-- The build replaces these names with their numbers, in all scripts of the native protocol.
CLAIM = 2000              -- a grant expires unless it is claimed within this time
SLICE = 5000              -- a waiter near the head asks again so often, one far from it up to MOST_SLICES times as rarely
HEARTBEAT = 15000         -- and is dropped unless it does within three of its slices
NEAR = 64                 -- waiters that are near the head, and the positions after which the slice grows
MOST_SLICES = 4
TOMBSTONE = 60000         -- how long the end of an owner is remembered, at least
FORM = 1                  -- the number of the stored form; within 1.x it stays
KEPT = 2592000000         -- 30 days from the last use, until the keys end. Until then inspect and a late renewal find a lease that has
                          -- ended, and the next script that writes lists and counts its run
HOUR = 3600000
RUNS = 100                -- rows in the history, unless the last run asked for another number
LONGEST_KEPT = 4096       -- the record of a success is not kept where its row is longer
SWEEP = 256               -- removed by one script, of holders, waiters and tombstones each
MOST_SLOTS = 1024         -- of holders that are numbered
CLOSED = '~closed'        -- the closure of a lock: a holder that is none
AHEAD = 31536000000000    -- us: a year, by which a waiter that may pass a closure is ahead of all others
-- Kinds of tombstones: the larger one replaces the smaller. After EXPIRED and REQUEUED the owner may come back. DONE: another
-- has done the work of a waiter, or it failed too often; SUPERSEDED: a newer waiter replaced this one.
EXPIRED = 0
REQUEUED = 1
WAS_RELEASED = 2
CANCELLED = 3
DONE = 4
SUPERSEDED = 5
REMOVED = 6
FORCED = 7
RLOCK_RUN = '2'           -- who responds when its lock is broken: nobody (0), a renewer of steps (1), or rlock run
