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

job=(spec jobTemplate spec)

@test "a CronJob in two clusters does its job once; a skip and a second pod are no failures" {
  arguments kubernetes/cronjob.yaml "${job[@]}" template spec containers 0 args
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

@test "the pod failure policy names the codes after which another attempt is of no use" {
  needs_yaml
  codes=$(from_yaml kubernetes/cronjob.yaml "${job[@]}" podFailurePolicy rules 0 onExitCodes values | tr '\n' ' ')
  [ "$codes" = "64 77 " ]
  arguments kubernetes/cronjob.yaml "${job[@]}" template spec containers 0 args
  redis config set requirepass secret >/dev/null
  run -77 "${argv[@]}"
  redis -a secret --no-auth-warning config set requirepass '' >/dev/null
  RLOCK_URL=nonsense run -64 "${argv[@]}"
}

@test "one of five replicas that start together migrates, the others wait for it, and a new release migrates again" {
  arguments kubernetes/migrate.yaml spec template spec initContainers 0 args
  program migrate 'sleep 0.5; echo migrated >>migrated'
  for i in 1 2 3 4 5; do
    start sh -c '"$@" && cat migrated' sh "${argv[@]}" >"replica.$i" 2>/dev/null
  done
  all_done
  for i in 1 2 3 4 5; do [ "$(cat "replica.$i")" = migrated ] || fail "replica $i started before the migration was done"; done
  rlock run --once 9be01d7 shop/migrate -- ./migrate
  [ "$(wc -l <migrated)" -eq 2 ]
}

@test "a migration that fails is done by another replica" {
  arguments kubernetes/migrate.yaml spec template spec initContainers 0 args
  program migrate 'mkdir first || { echo migrated >>migrated; exit 0; }; exit 7'
  run -7 "${argv[@]}"
  run -0 "${argv[@]}"
  run -0 "${argv[@]}"
  [ "$(wc -l <migrated)" -eq 1 ]
}

@test "one of two pods runs the service, and the other takes over when the first is stopped" {
  arguments kubernetes/standby.yaml spec template spec containers 0 args
  program bin/scheduler 'echo "$RLOCK_TOKEN $*" >>ran; exec sleep 1000'
  start "${argv[@]}" 2>/dev/null
  local active=$!
  eventually test -s ran
  start "${argv[@]}" 2>/dev/null
  eventually waiting 1 shop/scheduler
  ends_by TERM "$active"
  both_ran() { [ "$(wc -l <ran)" -eq 2 ]; }
  eventually both_ran
  grep -q -- '--listen :8080' ran
}

@test "docker compose: a service of its own migrates once for each release, as its first process, and the replicas wait for it" {
  arguments compose/compose.yaml services migrate command
  [ "${argv[0]}" = rlock ] || fail "a shell around rlock keeps TERM from it: ${argv[*]}"
  [ "$(from_yaml compose/compose.yaml services shop depends_on migrate condition)" = service_completed_successfully ]
  # release NAME: the arguments as compose fills them in.
  release() { mapfile -d '' -t filled < <(printf '%s\0' "${argv[@]}" | sed -z "s/^\${RELEASE:?name the release}\$/$1/"); }
  program migrate 'echo migrated >>migrated'
  release 4f2a91c
  for i in 1 2 3; do run -0 "${filled[@]}"; done
  [ "$(wc -l <migrated)" -eq 1 ]
  # Its code is that of the migration: compose does not start the replicas then.
  program migrate 'exit 7'
  release other
  run -7 "${filled[@]}"
}
