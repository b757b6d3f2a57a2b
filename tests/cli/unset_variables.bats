#!/usr/bin/env bats
# Values that cron, CI and containers deliver: a variable that is empty, in quotes, or still the template's.
load helpers/helpers

@test "an empty or blank text of -c is refused, and counts as no work; any other text runs" {
  local text
  for text in '' ' ' $'\t'; do
    refuses 64 "-c is empty; is its variable set?" -- rlock run --once-per day shop/nightly -c "$text"
  done
  for text in '"$0" -c true' 'echo {{.State}} ${HOME}' "'true'"; do
    run -0 env SHELL=/bin/sh rlock run shop/nightly -c "$text"
  done
  run -0 rlock run --once-per day shop/nightly -c 'touch work'
  [ -e work ]
}

@test "a blank or quoted NAME is refused" {
  refuses 64 'bad lock name " ": it is blank' -- rlock run ' ' -- touch started
  refuses 64 "bad lock name \"'shop'\": it is in quotes" -- rlock run "'shop'" -- touch started
  refuses 64 'it is in quotes' -- rlock acquire --ttl 1m '"shop"'
}

@test "a NAME of one part after a slash is refused with work that is done once, and warned of otherwise" {
  local once
  for once in '--once k' '--once-per day' '--once-within 1h'; do
    # shellcheck disable=SC2086 # words
    refuses 64 'bad lock name "/nightly": with --once' "correct the variable" -- rlock run $once /nightly -- touch started
    # shellcheck disable=SC2086 # words
    run -0 rlock run $once /srv/nightly -- true
  done
  run -0 --separate-stderr rlock run /nightly -- true
  says 'warning: lock name "/nightly": it begins with "/"; is the variable before it empty?'
  quietly rlock run -q /nightly -- true
  quietly rlock run /srv/x.lock -- true
  quietly rlock run https://git/x -- true
}

@test "a NAME or KEY that an empty variable seems to have shortened is warned of, and -q silences that" {
  local text
  for text in release- shop_ shop: v1.; do
    run -0 --separate-stderr rlock run "$text" -- true
    says "warning: lock name \"$text\": it ends with \"${text: -1}\"; is the variable after it empty?"
    quietly rlock run -q "$text" -- true
    run -0 --separate-stderr rlock run --once "$text" work -- true
    says "warning: KEY of --once \"$text\""
  done
  run -0 --separate-stderr rlock acquire --ttl 1s :deploy
  says 'warning: lock name ":deploy": it begins with ":"'
  for text in 'shop/$ENV' 'shop/%ENV%'; do
    run -0 --separate-stderr rlock run "$text" -- true
    says "warning: lock name \"$text\": it contains ${text#*/}; is that a variable that was left as it is?"
  done
  for text in a-b x-- 'cost-in-$' 'cost-$5' '10%-a' shop-/x; do
    quietly rlock run "$text" -- true
  done
}

@test "a prefix, URL, file or user that is empty or in quotes is refused, with the option, variable or line that it comes from" {
  refuses 64 '--prefix is empty; is its variable set? Use --prefix rlock: for the usual one' -- rlock run --prefix '' x -- touch started
  RLOCK_PREFIX='"team:"' refuses 64 'RLOCK_PREFIX: it is in quotes' -- rlock run x -- touch started
  RLOCK_URL="'$RLOCK_URL'" refuses 64 'RLOCK_URL: it is in quotes' -- rlock run x -- touch started
  refuses 64 '--cacert is empty' -- rlock run --cacert '' x -- touch started
  refuses 64 '--event-log: it is in quotes' -- rlock run --event-log '"log"' x -- touch started
  printf 'prefix = ""\n' >file.toml
  refuses 78 'file.toml:1: prefix is empty' -- rlock run --config file.toml x -- touch started
  # An empty variable is not set.
  RLOCK_PREFIX='' RLOCK_CACERT='' quietly rlock run x -- true
}

@test "a URL without its scheme, with another one, or with a variable left in it, is refused with what was probably meant" {
  RLOCK_URL=db1:6379 refuses 64 'RLOCK_URL: bad URL "db1:6379": did you mean redis://db1:6379?' -- rlock run x -- touch started
  RLOCK_URL=tcp://db1 refuses 64 'RLOCK_URL: bad URL "tcp://db1": did you mean redis://db1?' -- rlock run x -- touch started
  refuses 64 'did you mean unix:///run/redis.sock?' -- rlock run -u /run/redis.sock x -- touch started
  RLOCK_URL='${REDIS_URL}' refuses 64 'bad RLOCK_URL "${REDIS_URL}"' 'left the variable in it' -- rlock run x -- touch started
  RLOCK_URL='redis://$HOST:6379' refuses 64 'left the variable in it' -- rlock run x -- touch started
  RLOCK_URL='tcp://:secret@db1' refuses 64 'it must begin with redis://' -- rlock run x -- touch started
  # A password may contain anything.
  RLOCK_URL='redis://:${pa@[::1]:1' refuses 69 '[::1]:1' -- rlock run -w 0 --connect-timeout 1ms x -- touch started
}

@test "a configuration file whose folder cannot be entered is named if no server is given, and in config" {
  [ "$(id -u)" -eq 0 ] || skip "needs root, which can become another user"
  mkdir -p home/.config/rlock
  chmod 700 home
  stranger() {
    env -u RLOCK_CONFIG -u RLOCK_URL -u XDG_CONFIG_HOME HOME="$PWD/home" "$@" \
      setpriv --reuid 65534 --regid 65534 --clear-groups "$(command -v rlock)" "${words[@]}"
  }
  chmod 755 .
  words=(run x -- touch started)
  refuses 78 "no server given" "this user cannot enter the folder of $PWD/home/.config/rlock/rlock.toml" -- stranger
  words=(config)
  run -0 stranger
  [[ $output == *"cannot enter the folder of $PWD/home/.config/rlock/rlock.toml"* ]] || fail "$output"
}
