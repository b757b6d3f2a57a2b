# shellcheck shell=bash
# For the tests of acquire, renew and release.

field() { rlock status --json "$1" | jq -r ".locks[0].holders[0].$2"; }
free() { ! held "$1"; }

# renewers NAME: the processes of this test that renew NAME in the background.
renewers() {
  local pid
  for pid in $(ps -eo pid=,stat=,args= | awk -v name="$1" \
    '$2 !~ /^Z/ && $3 ~ /rlock$/ && $4 == "acquire" && $5 == name { print $1 }'); do
    if grep -qsxzF "SERVER=$SERVER" "/proc/$pid/environ"; then echo "$pid"; fi
  done
}
no_renewer() { [ -z "$(renewers "$1")" ]; }

# A process to renew for: $job. It ends on request.
job() {
  start sleep 1000
  job=$!
}
end_job() {
  kill -KILL "$job"
  ends_with 137 "$job"
}
