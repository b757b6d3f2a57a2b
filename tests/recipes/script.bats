#!/usr/bin/env bats
# Scripts that lock themselves, and COMING FROM SET NX EX, in rlock-recipes(7).
load ../cli/helpers/helpers
load example

# a_script SECTION N: the file script begins with this recipe. Each start of it is a line of `starts`, its work a line of `worked`.
a_script() {
  local text
  text=$(recipe "$@") || return
  # A script that starts itself for ever ends in the end.
  program script "echo >>starts; [ \"\$(wc -l <starts)\" -lt 20 ] || exit 99
$text
echo \"\$*\" >>worked"
}

# levels: how often the script was started.
levels() { wc -l <starts; }

count_and_order() {
  program count 'echo count >>ran'
  program order 'echo order >>ran'
}

# each_recipe COMMAND…: with section and block of each recipe of this page for a script.
each_recipe() {
  count_and_order
  while IFS=/ read -r section block; do
    rm -f starts worked
    "$@" "$section" "$block" || return
  done <<'END'
A SCRIPT THAT LOCKS ITSELF/1
A SCRIPT THAT LOCKS ITSELF/2
A BLOCK OF A SCRIPT/1
A BLOCK OF A SCRIPT/2
A BLOCK OF A SCRIPT/3
END
}

at_most_one_nested() { (($(levels) == 1 || $(levels) == 2)) || fail "$1: $(levels) starts: $output: $(cat script)"; }

# misspelt SECTION BLOCK: each place of the name once.
misspelt() {
  local i places
  a_script "$@"
  places=$(grep -o 'shop/[a-z]*' script | wc -l)
  [ "$places" -ge 1 ] || fail "no name in: $(cat script)" || return
  for ((i = 1; i <= places; i++)); do
    a_script "$@"
    # The ith name of the file.
    perl -0pi -e 'my $i = 0; s{shop/\w+}{++$i == '"$i"' ? "shpo/x" : $&}ge' script
    grep -q shpo/x script || fail "nothing is misspelt" || return
    rm -f starts
    run ./script
    at_most_one_nested "$*" || return
    rm -f starts
    run rlock run shop/job -- ./script
    at_most_one_nested "$*" || return
  done
}

@test "a script that locks itself nests once at most, whatever is misspelt" {
  each_recipe misspelt
}

server_away() {
  local option
  for option in "" --fail-open; do
    a_script "$@"
    # A run that waits does so for a minute.
    sed -i -e '/ -n /!s/rlock \(run\|acquire\)/rlock \1 -w 1/' -e "s/rlock run/rlock run $option/" script
    rm -f starts
    RLOCK_URL=unix://$here/nowhere run ./script
    at_most_one_nested "$* $option" || return
    rm -f starts
    RLOCK_URL=unix://$here/nowhere run rlock run --fail-open shop/job -- ./script
    at_most_one_nested "$* $option, below a run" || return
  done
}

@test "a script that locks itself nests once at most while the server is away, with --fail-open too" {
  each_recipe server_away
}

@test "a script that locks itself does its work once, under the lock, with its arguments; a second one is skipped" {
  a_script "A SCRIPT THAT LOCKS ITSELF"
  echo 'rlock status -q shop/job && rlock status -q --owner "$RLOCK_OWNER" shop/job && touch under' >>script
  run -0 ./script one 'two three'
  [ "$(cat worked)" = "one two three" ]
  [ -e under ]
  hold shop/job
  run -75 ./script
  [ "$(wc -l <worked)" -eq 1 ]
  let_go shop/job
}

@test "a script that checks its lock finds it inside the run, not elsewhere, and unknown without a server" {
  a_script "A SCRIPT THAT LOCKS ITSELF" 2
  run -64 ./script
  [[ $output == *"start me with: rlock run shop/job -- ./script"* ]] || fail "$output"
  run -0 rlock run shop/job -- ./script
  run -64 rlock run shop/other -- ./script
  RLOCK_OWNER=0123456789abcdef0123456789abcdef RLOCK_URL=unix://$here/nowhere run -69 ./script
  RLOCK_URL=unix://$here/nowhere run -64 ./script
  [ "$(wc -l <worked)" -eq 1 ]
}

@test "a block of a script runs under the lock, which is free afterwards" {
  local block
  program count 'rlock status -q shop/stock && echo count >>ran'
  program order 'rlock status -q shop/stock && echo order >>ran'
  for block in 1 2 3; do
    rm -f ran
    a_script "A BLOCK OF A SCRIPT" "$block"
    run -0 ./script
    [ "$(tr '\n' ' ' <ran)" = "count order " ] || fail "$block: $output"
    free shop/stock
  done
}

@test "a pool with acquire: the script knows its slot, and releases it" {
  program tests 'echo "$DATABASE" >>ran; rlock status -q shop/test-database'
  hold shop/test-database --slots 4
  run -0 sh -c "$(recipe "A POOL OF FOUR TEST DATABASES" 2)"
  [ "$(cat ran)" = test2 ] || fail "$(cat ran)"
  let_go shop/test-database
  free shop/test-database
}

# pair N: the two commands of the Nth pair, in the files old and new.
pair() {
  recipe "COMING FROM SET NX EX" "$1" >pair
  grep -q '^rlock run ' pair || fail "$(cat pair)" || return
  grep -v '^rlock run ' pair >old
  grep '^rlock run ' pair >new
}

@test "SET NX EX: if the lock is free, both commands of each pair do the job" {
  program bin/redis-cli "exec $(command -v redis-cli) -s $SERVER/s \"\$@\""
  program bin/backup.sh 'echo backed up'
  for n in 1 2 3; do
    reset_server
    pair "$n"
    run -0 sh old
    [[ $output == "backed up"* ]] || fail "$output"
    run -0 --separate-stderr sh new
    [ "$output" = "backed up" ] || fail "$output"
  done
}

@test "SET NX EX: if the lock is busy, the first and the third pair skip the job, and the second waits" {
  program bin/redis-cli "exec $(command -v redis-cli) -s $SERVER/s \"\$@\""
  program bin/backup.sh 'echo backed up >>ran'
  redis set job 1 >/dev/null
  hold shop/job
  for n in 1 3; do
    pair "$n"
    run -0 sh old
    run -0 sh new
    [ ! -e ran ]
  done
  pair 2
  joins shop/job sh new
  start sh old
  old=$!
  let_go shop/job
  ends_with 0 "$waiter"
  eventually called_more_than 0 set
  redis del job >/dev/null
  ends_with 0 "$old"
  [ "$(wc -l <ran)" -eq 2 ]
}

@test "SET NX EX: in the third pair a second run within the hour is skipped" {
  program bin/backup.sh 'echo backed up >>ran'
  pair 3
  run -0 sh new
  run -0 sh new
  [ "$(wc -l <ran)" -eq 1 ]
  moved 3600
  run -0 sh new
  [ "$(wc -l <ran)" -eq 2 ]
}
