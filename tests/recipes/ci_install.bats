#!/usr/bin/env bats
# shellcheck disable=SC2317 # set by the helpers; for the shell of the steps; called by each
# packaging/ci: the steps of the action for GitHub and of the component for GitLab, with a folder as a release.
load ../cli/helpers/helpers
load example

github=$BATS_TEST_DIRNAME/../../packaging/ci/github/action.yml
gitlab=$BATS_TEST_DIRNAME/../../packaging/ci/gitlab/templates/rlock.yml

# release: what packaging/release.sh leaves of the program, and what a runner sets.
release() {
  needs_yaml
  machine=$(dpkg --print-architecture)
  program=rlock-linux-$machine
  mkdir release project
  cp "$RLOCK" "release/$program"
  echo '{}' >"release/$program.spdx.json"
  (cd release && sha256sum -- * >SHA256SUMS)
}

# job SYSTEM NAME=VALUE…: its steps, with neither the rlock nor the folders of the test on the PATH; the release is the folder, unless said.
job() {
  local system=$1 inputs=("${@:2}")
  [[ " ${inputs[*]}" == *" release="* ]] || inputs+=("release=$here/release")
  local runner=(env -i "--default-signal=INT,QUIT" HOME="$here" PATH=/usr/bin:/bin RLOCK_URL="$RLOCK_URL" RLOCK_CONFIG=/dev/null)
  if [ "$system" = github ]; then
    : >path
    exec "${runner[@]}" RUNNER_TEMP="$here/project" GITHUB_PATH="$here/path" \
      /usr/bin/python3 "$BATS_TEST_DIRNAME/runner.py" "$github" "${inputs[@]}"
  fi
  exec "${runner[@]}" CI_PROJECT_DIR="$here/project" CI_PIPELINE_IID=7 \
    /usr/bin/python3 "$BATS_TEST_DIRNAME/runner.py" "$gitlab" job=deploy "${inputs[@]}"
}

# each COMMAND…: for both systems.
each() {
  local system
  for system in github gitlab; do
    reset_server
    rm -rf project/.rlock-bin ran
    echo "with $system:"
    "$@"
  done
}

@test "the action and the component install the program of the release, and run the command under the lock with the options of the inputs" {
  release
  check() {
    run -0 job "$system" name=deploy once=v1 slots=1 wait=1m reason=release \
      command='echo "$RLOCK_NAME $RLOCK_SLOT $(command -v rlock)"; rlock status --json deploy | jq -r ".locks[0].holders[0].reason"; exit 0; echo never'
    [[ $output == *"$program: OK"* && $output == *"deploy 1 $here/project/.rlock-bin/rlock"$'\nrelease' ]] || fail "$output"
    run -0 job "$system" name=deploy once=v1 command='touch ran'
    [ ! -e ran ]
    run -1 job "$system" name=deploy shell=bash command='false; touch ran'
    [ ! -e ran ]
    hold deploy
    run -75 job "$system" name=deploy wait=0 command='touch ran'
    run -9 job "$system" name=deploy wait=0 exit-code=busy=9 command='touch ran'
    [ ! -e ran ]
    let_go deploy
  }
  each check
}

@test "an input is data, whatever it contains; a lock whose name would be an option is refused" {
  release
  # rlock refuses $( in a NAME or KEY, but not in a text.
  local name='a"b'\''c: $touch `touch ran`; touch ran # &!|>%@' any
  any="$name \$(touch ran) {[*"
  check() {
    run -0 job "$system" name="$name" reason="$any" once="$name" command='echo "$RLOCK_NAME"'
    [ "${lines[-1]}" = "$name" ] || fail "$output"
    [ "$(rlock history --json "$name" | jq '.runs | length')" -eq 1 ]
    run -64 job "$system" name=--fail-open command='touch ran'
    run ! job "$system" name=deploy wait='1m --fail-open' command='touch ran'
    [ ! -e ran ]
  }
  each check
  # A line of its own would be a line of GitLab's file.
  run ! job gitlab name=deploy command=$'true\n      expand: true'
  [[ $output == *"does not fit its regex"* ]] || fail "$output"
  run -0 job github name=deploy command=$'echo first\necho second'
  [[ $output == *$'first\nsecond' ]] || fail "$output"
}

@test "a program that is damaged, that SHA256SUMS does not name, or that is not the expected one, is not run" {
  release
  sum=$(sha256sum <"release/$program" | cut -d ' ' -f 1)
  refused() {
    run ! job "$system" name=deploy command='touch ran' "$@"
    [ ! -e ran ]
    [ ! -e project/.rlock-bin/rlock ]
  }
  check() {
    run -0 job "$system" name=deploy command=true sha256="$sum"
    rm -r project/.rlock-bin
    refused sha256="${sum/[0-7]/8}"
    refused release="$here/none"
    cp "release/$program" whole
    echo >>"release/$program"
    refused
    mv whole "release/$program"
    sed -i.whole "/$program\$/d" release/SHA256SUMS
    refused
    mv release/SHA256SUMS.whole release/SHA256SUMS
  }
  each check
}

@test "a release may be at a URL, which is not read without TLS" {
  command -v curl >/dev/null || skip "curl is not installed"
  release
  check() {
    run -0 job "$system" name=deploy release="file://$here/release/" command='echo ran'
    [ "${lines[-1]}" = ran ] || fail "$output"
    run -1 job "$system" name=deploy release=http://127.0.0.1:1 command='touch ran'
    [[ $output == *[Pp]rotocol*http* ]] || fail "$output"
  }
  each check
}

@test "a cancel that reaches only the shell of the step stops the command and frees the lock" {
  release
  check() {
    local shell signal=TERM code=143
    if [ "$system" = github ]; then signal=INT code=130; fi
    job "$system" name=deploy command='echo $$ >running; sleep 1000; true' >/dev/null 2>&1 3>&- 4>&- &
    shell=$!
    started+=("$shell")
    eventually test -s running
    kill "-$signal" "$shell"
    ends_with "$code" "$shell"
    eventually gone "$(cat running)"
    run -1 rlock status -q deploy
    rm running
  }
  each check
}

@test "the number of a GitLab pipeline comes from a variable, and a later run with a smaller number is superseded" {
  release
  run -0 job gitlab name=deploy supersede='$CI_PIPELINE_IID' command='true'
  run -79 job gitlab name=deploy supersede=6 exit-code=superseded=79 command='touch ran'
  [ ! -e ran ]
}

@test "without a name the action only installs: later steps find rlock on the PATH" {
  release
  run -0 job github
  run -0 env PATH="$(cat path):/usr/bin:/bin" sh -c 'command -v rlock'
  [ "$output" = "$here/project/.rlock-bin/rlock" ]
}

@test "the action and the component have the same steps, and each of their options is an option of rlock run" {
  needs_yaml
  local runner=(/usr/bin/python3 "$BATS_TEST_DIRNAME/runner.py" --script) option
  "${runner[@]}" "$github" release=x name=x >of_github
  "${runner[@]}" "$gitlab" release=x name=x job=x command=x >of_gitlab
  run -0 diff of_github of_gitlab
  sed -n 's/^for option in \(.*\); do$/\1/p' of_github | tr ' ' '\n' >options
  [ "$(wc -l <options)" -ge 9 ]
  while read -r option; do
    rlock run --help | grep -qE -- "--${option}[ =[]" || fail "rlock run has no --$option"
    grep -qx "  $option:" "$github" || fail "no input $option"
  done <options
}
