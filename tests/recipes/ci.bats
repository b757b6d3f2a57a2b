#!/usr/bin/env bats
# The examples for CI: their steps, started and cancelled as the runners do it.
load ../cli/helpers/helpers
load example

export CI_COMMIT_SHORT_SHA=4f2a91c GITHUB_SHA=4f2a91c

# gitlab: its script as the runner's bash gets it. github STEP: of the job deploy. jenkins: what its sh gets.
gitlab() {
  needs_yaml
  mkdir ci
  from_yaml ci/gitlab-ci.yml deploy script >script
}

github() {
  needs_yaml
  mkdir ci
  from_yaml ci/github-actions.yml jobs deploy steps "$1" run >script
}

jenkins() {
  mkdir ci
  sed -n "/'''\$/,/^ *'''/p" "$examples/ci/Jenkinsfile" | sed '1d;$d' >script
}

# deploy TEXT: what the project's script does.
deploy() { echo "$1" >ci/deploy.sh; }

# number VARIABLE N SHELL…: a pipeline of this number starts; $! is the shell of its step.
number() { start env "$1=$2" "${@:3}" ./script 2>"errors.$2"; }

# A deploy runs, and the signal reaches its step's shell alone: the deploy ends, and the lock is free.
cancelled() {
  local signal=$1 code=$2 variable=$3 shell
  deploy 'echo $$ >>running; sleep 1000'
  number "$variable" 1 "${@:4}"
  shell=$!
  eventually test -s running
  kill "-$signal" "$shell"
  ends_with "$code" "$shell"
  eventually gone "$(cat running)"
  run -1 rlock status -q shop/deploy
}

# While a deploy runs, 6, 8 and 7 come, and 5 is retried: 8 deploys, the others exit with CODE.
only_forwards() {
  local code=$1 variable=$2 first newest
  shift 2
  local old
  deploy 'echo deployed >>deployed'
  hold shop/deploy
  number "$variable" 6 "$@"
  first=$!
  eventually waiting 1 shop/deploy
  number "$variable" 8 "$@"
  newest=$!
  ends_with "$code" "$first"
  for old in 7 5; do
    number "$variable" "$old" "$@"
    ends_with "$code" $!
    grep -q superseded "errors.$old" || fail "$(cat "errors.$old")"
  done
  let_go shop/deploy
  ends_with 0 "$newest"
  [ "$(wc -l <deployed)" -eq 1 ] || fail "$(cat deployed)"
}

@test "GitLab: a cancel stops the deploy and frees the lock" {
  gitlab
  cancelled TERM 143 CI_PIPELINE_IID bash -eo pipefail
}

@test "GitLab: deploys only move forward, and a superseded deploy is neither retried nor a failure" {
  gitlab
  only_forwards 79 CI_PIPELINE_IID bash -eo pipefail
  [[ $'\n'$(from_yaml ci/gitlab-ci.yml deploy allow_failure exit_codes)$'\n' == *$'\n'79$'\n'* ]]
  [[ $'\n'$(from_yaml ci/gitlab-ci.yml deploy retry exit_codes)$'\n' != *$'\n'79$'\n'* ]]
}

# A pipeline as GitLab's runner starts it: the script is the last part of a pipe, and a cancel signals the group of its processes.
@test "GitLab: in the pipe of the runner the exit code is that of rlock, and a cancel of the group stops the deploy" {
  gitlab
  printf ": | eval '%s'\n" "$(cat script)" >piped
  deploy 'exit 79'
  CI_PIPELINE_IID=1 run -79 bash -eo pipefail piped
  deploy 'echo $$ >>running; exec sleep 1000'
  start env CI_PIPELINE_IID=2 setsid bash -eo pipefail piped
  local leader=$!
  eventually test -s running
  kill -TERM -- "-$leader"
  ends_with 143 "$leader"
  eventually free shop/deploy
}

@test "GitLab: only the job that calls rlock has its password, and GitHub: only such steps" {
  needs_yaml
  run ! from_yaml ci/github-actions.yml env RLOCK_PASSWORD
  local job step
  for job in deploy release-train; do
    for ((step = 1; step < $(from_yaml ci/github-actions.yml jobs "$job" steps | wc -l); step++)); do
      from_yaml ci/github-actions.yml jobs "$job" steps "$step" >step
      [ "$(jq 'has("env") and (.env | has("RLOCK_PASSWORD"))' step)" = "$(jq '.run | test("rlock ")' step)" ] || fail "$(cat step)"
    done
  done
}

# The recipe, whose pipeline may be of any CI system.
page() {
  mkdir ci
  recipe "A DEPLOY FROM CI" >script
}

@test "the page: a cancel stops the deploy and frees the lock" {
  page
  cancelled TERM 143 CI_PIPELINE_IID bash -e
}

@test "the page: deploys only move forward" {
  page
  only_forwards 79 CI_PIPELINE_IID bash -e
}

@test "the page: a step passes the lock on to the next one, and fails if it did not acquire it" {
  export GITHUB_OUTPUT=$here/output
  recipe "SEVERAL STEPS UNDER ONE LOCK" >script
  run -0 bash -e script
  run -0 rlock release shop/deploy --owner "$(sed -n 's/^owner=//p' output)"
  RLOCK_URL=unix://nobody:wrong@$SERVER/s run -77 bash -e script
}

@test "GitHub: a cancel stops the deploy and frees the lock" {
  github 1
  cancelled INT 130 GITHUB_RUN_NUMBER bash -e
}

@test "GitHub: deploys only move forward" {
  github 1
  only_forwards 75 GITHUB_RUN_NUMBER bash -e
}

# steps: the steps of the release train, until one fails; then the last, which is there always().
steps() {
  local step count code=0
  count=$(from_yaml ci/github-actions.yml jobs release-train steps | wc -l)
  : >output
  for ((step = 1; step < count - 1 && code == 0; step++)); do
    from_yaml ci/github-actions.yml jobs release-train steps "$step" run >script
    OWNER=$(sed -n 's/^owner=//p' output) bash -e script || code=$?
  done
  [[ $(from_yaml ci/github-actions.yml jobs release-train steps $((count - 1)) if) == "always() && "* ]] || return 99
  from_yaml ci/github-actions.yml jobs release-train steps $((count - 1)) run >script
  if [ -s output ]; then OWNER=$(sed -n 's/^owner=//p' output) bash -e script || return 98; fi
  return "$code"
}

@test "GitHub: the steps of a train hold the lock, release it in any case, and stop when it is lost" {
  needs_yaml
  mkdir ci
  export GITHUB_OUTPUT=$here/output
  program ci/build.sh 'rlock status -q shop/deploy && echo build >>ran'
  program ci/roll-out.sh 'rlock status -q shop/deploy && echo roll-out >>ran'
  run -0 steps
  [ "$(tr '\n' ' ' <ran)" = "build roll-out " ] || fail "$output"
  run -1 rlock status -q shop/deploy
  program ci/build.sh 'exit 7'
  run -7 steps
  run -1 rlock status -q shop/deploy
  # Lost in the middle: no roll-out.
  rm ran
  program ci/build.sh 'rlock force-unlock shop/deploy --yes'
  run ! steps
  [ ! -e ran ]
  # A lock that is not acquired fails its step.
  RLOCK_URL=unix://nobody:wrong@$SERVER/s run -77 steps
}

@test "Jenkins: a signal to the shell stops the deploy and frees the lock" {
  jenkins
  cancelled TERM 143 BUILD_NUMBER sh -xe
}

@test "Jenkins: deploys only move forward, and a superseded deploy is not tried again" {
  jenkins
  only_forwards 79 BUILD_NUMBER sh -xe
  grep -q 'code in \[69, 75\]' "$examples/ci/Jenkinsfile"
}
