#!/usr/bin/env bats
# rlock watch: a live table on a terminal, differences as JSON elsewhere. What is on the screen is in
# helpers/watch_scenes.py.
load helpers/helpers

scene() { watch_scenes.py "$@" 3>&- 4>&-; }

# seen WORD FILE: a line of FILE has it.
seen() { grep -q -- "$1" "$2"; }

@test "the table follows the locks, enter shows a queue, and q restores the screen" {
  own
  scene live_change
}

@test "the table follows the size of the terminal, down to 20 columns" {
  own
  scene resize
}

@test "watch uses no colours with NO_COLOR, only ASCII without UTF-8, and no control sequence on a dumb terminal" {
  own
  scene no_colour
}

@test "hostile text of others does not reach the terminal" {
  own
  scene hostile
}

@test "watch shows the end of the server with the last table, and its return" {
  own
  scene server_ends
}

@test "watch shows a hanging server immediately, with the whole reason, and the keys work" {
  own
  scene server_hangs
}

@test "a signal or ^Z restores the terminal" {
  own
  (trap '' HUP INT TERM && scene signals)  # as nohup and a background job of a shell have it
}

@test "q restores a terminal whose output ^S has stopped" {
  own
  scene stopped_output
}

@test "off a terminal watch prints one object for each change" {
  own
  owner=$(rlock acquire deploy --ttl 20m)
  start "$RLOCK" watch >changes
  eventually seen '"event":"seen".*"name":"deploy".*"state":"held"' changes
  rlock release deploy --owner "$owner"
  eventually seen '"event":"changed".*"fields":\["state","holders"\].*"state":"free"' changes
  eventually seen '"event":"gone".*"name":"deploy".*"lock":null' changes
  ends_by TERM $!
  [ "$(wc -l <changes)" -eq 3 ]
  "$BATS_TEST_DIRNAME/../style/validate.py" changes
}

@test "watch --json reports a named lock even if it is free, and the server's end and return" {
  own
  start "$RLOCK" watch --json nightly >changes
  eventually seen '"event":"seen".*"name":"nightly".*"state":"free"' changes
  end_server "$own_server"
  eventually seen '"event":"server-lost".*"message":"' changes
  restart
  eventually seen '"event":"server-back"' changes
  ends_by INT $!
  "$BATS_TEST_DIRNAME/../style/validate.py" changes
}

@test "watch ends when its reader is gone" {
  own
  rlock acquire deploy --ttl 20m
  timeout 60 "$RLOCK" watch | head -n 1 >first
  [ "${PIPESTATUS[0]}" -eq 0 ]
  seen '"event":"seen"' first
}

@test "a quorum is watched as one server, with those that are silent" {
  quorum 3
  rlock acquire deploy --ttl 50s
  start "$RLOCK" watch >changes
  eventually seen '"event":"seen".*"servers":3' changes
  signal_server KILL 3
  eventually seen '"fields":\[[^]]*"quorum"' changes
  ends_by TERM $!
  "$BATS_TEST_DIRNAME/../style/validate.py" changes
}

@test "locks of other clients are watched by name" {
  own
  redis set their-key some-owner PX 60000
  start "$RLOCK" watch --format plain their-key >changes
  eventually seen '"name":"their-key".*"state":"held".*"format":"plain"' changes
  redis del their-key
  eventually seen '"event":"changed".*"state":"free"' changes
  ends_by TERM $!
}

@test "watch exits with 69 if no server answers at its start, and with 77 if the server refuses" {
  run -69 rlock watch -u "unix://$here/nowhere" --connect-timeout 200ms
  run -69 rlock watch --json -u "unix://$here/nowhere" --connect-timeout 200ms
  own --requirepass secret
  run -77 rlock watch
}

@test "watch shows the locks of local:" {
  rlock -u "local:$here/own" acquire deploy --ttl 20m
  start "$RLOCK" -u "local:$here/own" watch >changes
  eventually seen '"name":"deploy"' changes
  ends_by TERM $!
}

@test "watch ends when the reader at the other end of a socket is gone, and bytes from there do not disturb it" {
  own
  python3 - <<'PYTHON'
import os, socket, subprocess
reader, writer = socket.socketpair()
watch = subprocess.Popen(["rlock", "watch", "deploy"], stdout=writer)
writer.close()
assert reader.recv(4096)
reader.send(b"GET / HTTP/1.0\r\n")
for _ in range(3):
    owner = subprocess.run(["rlock", "acquire", "deploy", "--ttl", "20m"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    assert reader.recv(4096)
    subprocess.run(["rlock", "release", "deploy", "--owner", owner], check=True)
    assert reader.recv(4096)
reader.close()
_, code, used = os.wait4(watch.pid, 0)
assert code == 0
assert used.ru_utime + used.ru_stime < 1, used
PYTHON
}
