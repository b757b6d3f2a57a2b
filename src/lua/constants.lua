-- The build replaces these names with their numbers, in all scripts of the native protocol.
CLAIM = 2000              -- a grant expires unless it is claimed within this time
SLICE = 5000              -- after this time a waiter near the head asks again; far from the head, after up to MOST_SLICES of it
HEARTBEAT = 15000         -- a waiter that is silent for three of its slices counts as dead
NEAR = 64                 -- number of waiters near the head, and of the positions after which the slice grows
MOST_SLICES = 4
TOMBSTONE = 60000         -- the end of an owner is remembered at least so long
FORM = 1                  -- the number of the stored form; within 1.x it stays
KEPT = 2592000000         -- 30 days: the keys expire so long after the last use. Until then inspect and a late renewal find an expired
                          -- lease, and the next script that writes lists and counts its run
HOUR = 3600000
RUNS = 100                -- rows in the history, unless the last run asked for another number
LONGEST_KEPT = 4096       -- the memory keeps no record of a success whose row has more bytes
SWEEP = 256               -- how many holders, waiters and tombstones one script removes, each
MOST_SLOTS = 1024         -- the greatest limit with which holders have slots
CLOSED = '~closed'        -- the closure of a lock, which is stored as a holder
AHEAD = 31536000000000    -- us: a year, by which an exempt waiter is ahead of all others
-- Kinds of tombstones: the larger one replaces the smaller. After EXPIRED and REQUEUED the owner may come back. DONE: the
-- work of a waiter was done, or failed too often. SUPERSEDED: a newer waiter replaced this one.
EXPIRED = 0
REQUEUED = 1
WAS_RELEASED = 2
CANCELLED = 3
DONE = 4
SUPERSEDED = 5
REMOVED = 6
FORCED = 7
RLOCK_RUN = '2'           -- responsive: who learns that the lock is broken: no process (0), a renewer of steps (1), rlock run (2)
