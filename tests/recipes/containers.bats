#!/usr/bin/env bats
# The examples for Kubernetes and Docker Compose: what their containers run.
load ../cli/helpers/helpers
load example

# arguments FILE KEY…: into the array argv.
arguments() {
  needs_yaml
  mapfile -d '' -t argv < <(from_yaml "$@" --arguments)
  [ "${#argv[@]}" -ge 3 ]
}

both_ran() { [ "$(wc -l <ran)" -eq 2 ]; }

job=(spec jobTemplate spec)

@test "a CronJob in two clusters does its job once; a skip and a second pod are no failures" {
  arguments kubernetes/cronjob.yaml "${job[@]}" template spec containers 0 command
  at_noon
  program bin/nightly-job 'echo ran >>nightly; echo $$ >running; sleep 1'
  start "${argv[@]}"
  local first=$!
  eventually test -s running
  run -0 "${argv[@]}"
  ends_with 0 "$first"
  run -0 "${argv[@]}"
  [ "$(wc -l <nightly)" -eq 1 ]
}

@test "the command of the page does the job once, too" {
  needs_yaml
  recipe "A KUBERNETES CRONJOB" >command.yaml
  mapfile -d '' -t argv < <(/usr/bin/python3 "$BATS_TEST_DIRNAME/from_yaml.py" command.yaml command --arguments)
  at_noon
  program bin/nightly-job 'echo ran >>nightly'
  for _ in 1 2; do run -0 "${argv[@]}"; done
  [ "$(wc -l <nightly)" -eq 1 ]
}

@test "the pod failure policy names the codes after which another attempt is of no use" {
  needs_yaml
  codes=$(from_yaml kubernetes/cronjob.yaml "${job[@]}" podFailurePolicy rules 0 onExitCodes values | tr '\n' ' ')
  [ "$codes" = "64 77 " ]
  arguments kubernetes/cronjob.yaml "${job[@]}" template spec containers 0 command
  redis config set requirepass secret >/dev/null
  run -77 "${argv[@]}"
  redis -a secret --no-auth-warning config set requirepass '' >/dev/null
  RLOCK_URL=nonsense run -64 "${argv[@]}"
}

@test "five replicas that start together migrate one after the other, and each starts when its own is done" {
  arguments kubernetes/migrate.yaml spec template spec initContainers 0 command
  program migrate 'mkdir migrating || exit; echo migrated >migrating/done; mv migrating/done .; rmdir migrating'
  for i in 1 2 3 4 5; do
    start sh -c '"$@" && cat done' sh "${argv[@]}" >"replica.$i" 2>/dev/null
  done
  all_done
  for i in 1 2 3 4 5; do [ "$(cat "replica.$i")" = migrated ] || fail "replica $i started before the migration was done"; done
}

@test "a migration that fails is repeated by another replica" {
  arguments kubernetes/migrate.yaml spec template spec initContainers 0 command
  program migrate 'mkdir first || exit 0; exit 7'
  run -7 "${argv[@]}"
  run -0 "${argv[@]}"
}

@test "one of two pods runs the service, and the other takes over when the first is stopped" {
  arguments kubernetes/standby.yaml spec template spec containers 0 command
  program bin/scheduler 'echo "$RLOCK_TOKEN $*" >>ran; exec sleep 1000'
  start "${argv[@]}" 2>/dev/null
  local active=$!
  eventually test -s ran
  start "${argv[@]}" 2>/dev/null
  eventually waiting 1 shop/scheduler
  ends_by TERM "$active"
  eventually both_ran
  grep -q -- '--listen :8080' ran
}

@test "docker compose: a service of its own migrates, as its first process, and the replicas wait for it" {
  arguments compose/compose.yaml services migrate command
  [ "${argv[0]}" = rlock ] || fail "a shell around rlock keeps TERM from it: ${argv[*]}"
  [ "$(from_yaml compose/compose.yaml services shop depends_on migrate condition)" = service_completed_successfully ]
  program migrate 'echo migrated >>migrated'
  run -0 "${argv[@]}"
  [ -e migrated ]
  # Its code is that of the migration: compose does not start the replicas then.
  program migrate 'exit 7'
  run -7 "${argv[@]}"
}

@test "docker compose: one of two workers runs, and the other takes over when the first is stopped" {
  arguments compose/compose.yaml services worker command
  program worker 'echo "$RLOCK_TOKEN" >>ran; exec sleep 1000'
  start "${argv[@]}" 2>/dev/null
  local active=$!
  eventually test -s ran
  start "${argv[@]}" 2>/dev/null
  eventually waiting 1 shop/worker
  ends_by TERM "$active"
  eventually both_ran
}

@test "docker compose: its server stores locks, and rlock doctor finds nothing to change" {
  mapfile -d '' -t argv < <(from_yaml compose/compose.yaml services redis command --arguments)
  start "${argv[@]}" --port 0 --unixsocket "$here/compose.sock" >/dev/null
  eventually redis-cli -s "$here/compose.sock" ping
  run -0 rlock -u "unix://$here/compose.sock" doctor
  run -0 rlock -u "unix://$here/compose.sock" run shop/worker -- true
}
