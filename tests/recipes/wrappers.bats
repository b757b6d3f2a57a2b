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

@test "terraform: commands that change the state take the lock of their folder and workspace, others take none" {
  command -v git >/dev/null || skip "git is not installed"
  wrapper terraform
  git init -q .
  git remote add origin https://ci:token@git.example.org/infra.git
  run -0 terraform apply -auto-approve
  TF_WORKSPACE=staging run -0 terraform destroy
  RLOCK_URL=unix://$here/none run -0 terraform plan
  [ "$(cat ran)" = "terraform https://git.example.org/infra.git default: apply -auto-approve
terraform https://git.example.org/infra.git staging: destroy
: plan" ] || fail "$(cat ran)"
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
