#!/usr/bin/env bats
# The alert rules and the dashboard of the examples.
load ../cli/helpers/helpers
load example

rules=$BATS_TEST_DIRNAME/../../packaging/examples/prometheus/rlock.rules.yml
dashboard=$BATS_TEST_DIRNAME/../../packaging/examples/grafana/rlock.json

@test "the alerts fire when they should, and not before" {
  command -v promtool >/dev/null || skip "promtool is not installed"
  # The test names the file of the rules by a path beside itself.
  cp "$rules" "$BATS_TEST_DIRNAME/prometheus_test.yml" .
  run -0 promtool check rules rlock.rules.yml
  run -0 promtool test rules prometheus_test.yml
}

# queries: those of the dashboard, one a line.
queries() { jq -r '.panels[].targets[].expr' "$dashboard"; }

# names: each metric of rlock in the input.
names() { grep -o '\brlock_[a-z_]*' | sort -u; }

@test "the alerts and the dashboard read metrics that rlock prints, even of a job that last ran long ago" {
  hold deploy
  queue_up deploy 2>/dev/null
  rlock run shop/nightly -- true
  run -7 rlock run shop/nightly -- sh -c 'exit 7'
  redis hset 'rlock:{long-ago}:meta' form 1 last 5 created 5
  # The command of the example, as its crontab has it.
  line=$(sed -n 's|^# *\* \* \* \* \* root \(rlock metrics.*\)|\1|p' "$rules" | sed "s|/var/lib/prometheus/node-exporter|$here|")
  run -0 sh -c "$line"
  grep -q '{name="long-ago"}' rlock.prom
  sed 's/#.*//' "$rules" | grep -v 'summary:\|description:' | names >wanted
  [ "$(wc -l <wanted)" -ge 4 ]
  { queries && jq -r '.templating.list[].query.query? // empty' "$dashboard"; } | names >of_dashboard
  [ "$(wc -l <of_dashboard)" -ge 12 ]
  cat of_dashboard >>wanted
  run -1 grep -vxFf <(names <rlock.prom) wanted
}

@test "the dashboard can be imported into any Grafana: its data source is a variable, its queries are valid" {
  run -0 jq -e '(has("__inputs") or has("id") | not) and .uid == "rlock"
    and any(.templating.list[]; .name == "datasource" and .type == "datasource")
    and all(.. | objects | select(has("datasource")) | .datasource; .uid == "${datasource}")
    and all(.panels[].targets; length > 0) and ([.panels[].id] | length == (unique | length))' "$dashboard"
  command -v promtool >/dev/null || skip "promtool is not installed"
  queries | sed 's/\$__rate_interval/5m/g; s/\$name/.*/g' |
    jq -Rn '{groups: [{name: "dashboard", rules: [inputs | {record: "query:\(input_line_number)", expr: .}]}]}' >queries.yml
  run -0 promtool check rules queries.yml
}
