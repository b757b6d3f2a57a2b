#!/usr/bin/env bats
# The wrappers of the examples, and logrotate's file for the event log.
load ../cli/helpers/helpers
load example

# wrapper NAME: the example, with a program behind it that writes down its lock and its arguments.
wrapper() {
  cp "$examples/wrappers/$1" "bin/$1"
  chmod +x "bin/$1"
  program real 'echo "$RLOCK_NAME: $*" >>ran'
  export TERRAFORM=$here/real ANSIBLE_PLAYBOOK=$here/real
}

# unlocked COMMAND…: needs no server.
unlocked() { RLOCK_URL=unix://$here/none "$@"; }

# each_line COMMAND…: with the words of each line of the standard input.
each_line() {
  local line
  while read -r line; do
    # shellcheck disable=SC2086 # the words of a line
    "$@" $line || return
  done
}

# shellcheck disable=SC2317 # by each_line
locked() {
  : >ran
  run -0 terraform "$@"
  [[ $(cat ran) == "terraform git.example.org/infra"*": $*" ]] || fail "$(cat ran)"
}

@test "terraform: a command that may change a state takes the lock, and any other needs no server" {
  command -v git >/dev/null || skip "git is not installed"
  wrapper terraform
  mkdir prod
  git init -q .
  git remote add origin https://git.example.org/infra.git
  each_line locked <<'END'
apply -auto-approve
-chdir=prod apply
destroy
state rm aws_instance.web
workspace delete staging
init -migrate-state
-chdir=prod init -force-copy
force-unlock 8a51
a-command-of-a-later-version
END
  : >ran
  each_line unlocked terraform <<'END'

-version
-chdir=prod plan -out plan
init -input=false
state list
workspace select staging
END
  run ! grep -v '^: ' ran
}

@test "terraform: a state has one lock, however its repository and its folder are named" {
  command -v git >/dev/null || skip "git is not installed"
  wrapper terraform
  mkdir prod
  git init -q .
  run ! terraform apply
  [ ! -e ran ]
  git remote add origin none
  while read -r url; do
    git remote set-url origin "$url"
    run -0 terraform -chdir=prod apply
    (cd prod && TERRAFORM=$here/real terraform apply)
  done <<'END'
https://git.example.org/infra
https://ci:token@git.example.org/infra.git/
ssh://git@git.example.org:2222/infra.git
git@git.example.org:infra.git
END
  [ "$(sed 's/: .*//' ran prod/ran | sort -u)" = "terraform git.example.org/infra/prod" ] || fail "$(cat ran prod/ran)"
  TF_WORKSPACE=staging run -0 terraform -chdir=prod apply
  [ "$(sed 's/: .*//' ran | sort -u | wc -l)" -eq 1 ] || fail "$(cat ran)"
}

@test "ansible: a play takes the lock, a check takes none" {
  wrapper ansible-playbook
  run -0 ansible-playbook site.yml
  RLOCK_URL=unix://$here/none run -0 ansible-playbook site.yml --check
  [ "$(cat ran)" = $'infra/ansible: site.yml\n: site.yml --check' ] || fail "$(cat ran)"
}

@test "four test databases: no two runs have the same one at the same time, and the next run gets the free one" {
  wrapper with-test-database
  mkdir taken
  # The first ones wait until all four are in use.
  program tests 'set -e; mkdir "taken/${DATABASE_URL##*/}"; echo "$DATABASE_URL" >>used
    until [ "$(sort -u used | wc -l)" -ge 4 ]; do sleep 0.02; done
    sleep 0.1; rmdir "taken/${DATABASE_URL##*/}"'
  for _ in {1..10}; do start with-test-database ./tests 2>/dev/null; done
  all_done
  [ "$(sort -u used | wc -l)" -eq 4 ] || fail "$(sort used)"
  [ "$(sort -u used | head -n 1)" = postgresql://db1/test1 ] || fail "$(sort used)"
}

@test "logrotate: a run keeps writing to the renamed file, the next run writes to the new file, and no event is lost" {
  PATH=$PATH:/usr/sbin
  command -v logrotate >/dev/null || skip "logrotate is not installed"
  [ "$(id -u)" -eq 0 ] || skip "needs root: its file gives the log to a user"
  mkdir log
  chgrp adm log
  chmod 2775 log
  sed "s|/var/log/rlock|$here/log|" "$examples/logrotate/rlock" >logrotate.conf
  chmod 644 logrotate.conf
  hold job --event-log log/events.jsonl
  logrotate --force --state state logrotate.conf
  let_go job
  rlock run --event-log log/events.jsonl job -- true
  [ "$(jq -r .event log/events.jsonl.1 | tr '\n' ' ')" = "acquired exited released " ] || fail "$(cat log/events.jsonl.1)"
  [ "$(jq -r .event log/events.jsonl | tr '\n' ' ')" = "acquired exited released " ] || fail "$(cat log/events.jsonl)"
  logrotate --force --state state logrotate.conf
  [ "$(zcat log/events.jsonl.2.gz | wc -l)" -eq 3 ]
}
