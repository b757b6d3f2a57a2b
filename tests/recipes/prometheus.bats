#!/usr/bin/env bats
# shellcheck disable=SC2154 # set by the helpers
# The alert rules of the examples.
load ../cli/helpers/helpers
load example

rules=$BATS_TEST_DIRNAME/../../packaging/examples/prometheus/rlock.rules.yml

@test "the alerts fire when they should, and not before" {
  command -v promtool >/dev/null || skip "promtool is not installed"
  # The test names the file of the rules by a path beside itself.
  cp "$rules" "$BATS_TEST_DIRNAME/prometheus_test.yml" .
  run -0 promtool check rules rlock.rules.yml
  run -0 promtool test rules prometheus_test.yml
}

# names: each metric of rlock in the input.
names() { grep -o '\brlock_[a-z_]*' | sort -u; }

@test "the alerts read metrics that rlock prints, also of a job that last ran long ago" {
  hold deploy
  start rlock run deploy -- true 2>/dev/null
  eventually waiting 1 deploy
  rlock run nightly -- true
  run -7 rlock run nightly -- sh -c 'exit 7'
  redis set 'rlock:{long-ago}:meta' '1 5 5 5 5 0 0 -'
  # The command of the example, as its crontab has it.
  local line
  line=$(sed -n 's|^# *\* \* \* \* \* root \(rlock metrics.*\)|\1|p' "$rules" | sed "s|/var/lib/prometheus/node-exporter|$here|")
  run -0 sh -c "$line"
  grep -q '{name="long-ago"}' rlock.prom
  sed 's/#.*//' "$rules" | grep -v 'summary:\|description:' | names >wanted
  [ "$(wc -l <wanted)" -ge 4 ]
  run -1 grep -vxFf <(names <rlock.prom) wanted
}
