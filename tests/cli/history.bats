#!/usr/bin/env bats
load helpers/helpers

past() { rlock history --json "$1" | jq -c "$2"; }

@test "a lock that was never held has no history, and that is no error" {
  run -0 rlock history nothing
  [[ $output == *nothing* ]] || fail "$output"
  run -0 rlock history --json nothing
  [ "$(jq -c '[.schema, .name, .runs, .skips.count, .skips.first]' <<<"$output")" = '[1,"nothing",[],0,null]' ] || fail "$output"
}

@test "history of a lock whose first run is in progress says so, and names status" {
  hold first
  run -0 --separate-stderr rlock history first
  says '"first" at ' "the first run is in progress and is recorded when it ends: held by " "rlock status first shows it"
  run -0 --separate-stderr rlock history -q first
  silent
  let_go first
  run -0 --separate-stderr rlock history first
  [ -z "$stderr" ]
}

@test "history shows how each run ended, the newest first" {
  rlock run various -- true
  run -7 rlock run various -- sh -c 'exit 7'
  run -137 rlock run various -- sh -c 'kill -KILL $$'
  run -124 rlock run --max-run 0.1 various -- sleep 1000
  rlock release various --owner "$(rlock acquire various --ttl 1m)"
  [ "$(past various '[.runs[] | [.how, .exit_code, .signal]]')" = \
    '[["released",null,null],["max-run",null,null],["released",null,9],["released",7,null],["released",0,null]]' ] ||
    fail "$(rlock history --json various)"
}

@test "lost, killed and broken runs are shown as such, and none as running forever" {
  hold sad -t 1h
  kill -KILL "$holder"
  moved 3600
  # The next one finds that the lease has ended.
  rlock run -n sad -- true
  [ "$(past sad '[.runs[] | [.how, .exit_code]]')" = '[["released",0],["expired",null]]' ] || fail "$(past sad .)"
  hold sad
  run -0 rlock force-unlock sad --yes
  ends_with 76 "$holder"
  [ "$(past sad '.runs[0].how')" = '"broken"' ] || fail "$(past sad .)"
  [[ $(rlock history sad) == *expired* ]]
}

@test "history -n shows so many runs, with their skips" {
  for waiter in first second third; do
    hold many
    run -75 rlock run -n --reason "$waiter" many -- true
    let_go many
  done
  [ "$(past many '[.runs[].skips.count]')" = '[1,1,1]' ]
  [ "$(rlock history --json --runs 2 many | jq -c '[.runs[].skips.count]')" = '[1,1]' ]
  [ "$(rlock history -n 1 many | wc -l)" -eq 3 ]
}

@test "closing a lock hides neither runs nor skips" {
  rlock run shut -- true
  hold shut
  run -75 rlock run -n shut -- true
  rlock close --for 1h shut
  run -75 rlock run -n shut -- true
  let_go shut
  for _ in 1 2 3; do
    rlock open shut
    rlock close --for 1h shut
  done
  run -75 rlock run -n shut -- true
  [ "$(past shut '[.skips.count, .runs[0].skips.count, .runs[-1].exit_code]')" = '[1,2,0]' ] || fail "$(past shut .)"
  [ "$(rlock history --json -n 1 shut | jq '.runs[0].exit_code')" = 0 ]
  [ "$(rlock history --json -n 1 | jq '.runs[0].exit_code')" = 0 ]
}

@test "the table keeps to the columns of a terminal" {
  rlock run narrow -- sh -c ": $(printf 'x%.0s' {1..300})"
  start in_terminal.py sh -c 'stty cols 80 && rlock history narrow' >shown
  ends_with 0 $!
  [ "$(tr -d '\r' <shown | wc -L)" -le 80 ] || fail "$(cat shown)"
}

@test "rows that are not ours still give a table and valid JSON" {
  rlock run odd -- true
  redis lpush 'rlock:{odd}:history' 'kind=run token=x since=y | z' \
    $'kind=skip times=99999999999999999999 | \xff' 'what' $'kind=run token=1 since=2 ended=3 how=\e[31m result=\xff | \xfe' >/dev/null
  rlock history odd >shown
  run ! grep -qP '[\x00-\x09\x0b-\x1f\x7f]' shown
  rlock history --json odd >json
  python3 -c 'import json; json.loads(open("json", "rb").read().decode("utf-8"))'
}

@test "history shows who broke a lock or a cool-down, and why" {
  by="$(id -un)@$(hostname)"
  hold broken
  rlock force-unlock broken --yes --reason "host is gone"
  ends_with 76 "$holder"
  rlock history broken | grep -qF "[broken by $by: host is gone] sh -c" || fail "$(rlock history broken)"
  rlock release broken --owner "$(rlock acquire broken --ttl 1m)"
  rlock acquire broken --ttl 1m
  rlock force-unlock broken --yes --now --reason "left behind"
  rlock run --min-hold 1h broken -- true
  rlock force-unlock broken --yes --reason "needed now"
  [ "$(past broken '[.runs[] | [.how, .exit_code, .broken.reason, .broken.user == "'"$(id -un)"'"]]')" = \
    '[["released",0,"needed now",true],["broken",null,"left behind",true],["released",null,null,false],["broken",null,"host is gone",true]]' ] ||
    fail "$(past broken .)"
  rlock history broken | grep -qF "[cool-down broken by $by: needed now] true" || fail "$(rlock history broken)"
  rlock history --json broken | jq -e '.runs[0].broken | .host != null and (.at | test("^[0-9-]{10}T.*Z$"))'
}

@test "without a name, history shows all locks and reads them in batches" {
  reset_server
  run -0 rlock history
  [ "$output" = "no runs are recorded" ]
  rlock run first -- true
  redis eval 'for i = 1, 50 do
      for _, key in ipairs({"meta", "history"}) do
        redis.call("COPY", "rlock:{first}:" .. key, "rlock:{copy" .. i .. "}:" .. key)
      end
    end' 0
  reads() { redis info stats | sed -n 's/^total_reads_processed:\([0-9]*\).*/\1/p'; }
  before=$(reads)
  run -0 rlock history -n 100
  [ "${#lines[@]}" -eq 52 ] || fail "$output"
  [ $(($(reads) - before)) -lt 30 ] || fail "$(($(reads) - before)) reads"
}
