#!/usr/bin/env bats
load helpers/helpers

# RLOCK_STRESS_SECONDS and RLOCK_STRESS_SEED make it longer and repeat it.
@test "a minute of all modes, kills, cancels, force-unlocks and a FLUSHALL: no violation" {
  run -0 python3 "$BATS_TEST_DIRNAME/helpers/mixed_stress.py" "$RLOCK" "$BEAT" "$RLOCK_URL" \
    "${RLOCK_STRESS_SECONDS:-60}" ${RLOCK_STRESS_SEED:+"$RLOCK_STRESS_SEED"}
  echo "# $(tail -n 1 <<<"$output")" >&3
}
