#!/usr/bin/env bats
# The skill for coding agents: its lines do what it says.
load ../cli/helpers/helpers
load example

skill=$BATS_TEST_DIRNAME/../../packaging/examples/agents/rlock/SKILL.md

# block N: its Nth block of commands.
block() {
  awk -v wanted="$1" '/^```sh$/ { inside = ++n == wanted; next } /^```$/ { inside = 0 } inside' "$skill" | grep . || fail "no block $1"
}

@test "the skill begins with a name and one line that says when to use it" {
  [ "$(sed -n '1p;4p' "$skill")" = $'---\n---' ]
  sed -n 2p "$skill" | grep -qx 'name: rlock'
  sed -n 3p "$skill" | grep -q '^description: .* Use this skill before '
}

@test "the command runs the job under the lock, and the line with status names the holder" {
  program job.sh 'rlock status project/job >seen; exit 7'
  run -7 bash -c "$(block 1)"
  grep -q 'project/job.*held' seen || fail "$(cat seen)"
  bash -c "$(block 2)" | grep -q free
}

@test "a job over its limit and a busy lock exit with the codes of the skill's table" {
  program job.sh 'exec sleep 1000'
  run -124 bash -c "$(block 1 | sed 's/--max-run 20m/--max-run 100ms/')"
  rlock acquire project/job --ttl 1h >/dev/null
  run -75 bash -c "$(block 1 | sed 's/--wait 5m/--wait 100ms/')"
  grep -q '^| 75 |' "$skill"
  grep -q '^| 124 |' "$skill"
}

@test "steps in several calls hold the lock between them" {
  run -0 bash -c "$(block 3 | sed -n 1p)"
  run -75 rlock run -n project/job -- true
  run -0 bash -c "$(block 3 | sed -n 2p)"
  run -0 bash -c "$(block 3 | sed -n 3p)"
  run -0 rlock run -n project/job -- true
  run -76 bash -c "$(block 3 | sed -n 2p)"
}
