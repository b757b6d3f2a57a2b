#!/usr/bin/env bats
# The crontab of the examples, under Debian's cron.
load ../cli/helpers/helpers

crontab=$BATS_TEST_DIRNAME/../../packaging/examples/cron/rlock-nightly

# host NAME CRONTAB…: a cron of its own, in the folder NAME: its mail is there, and what its jobs write.
host() {
  local name=$1
  shift
  mkdir -p "$name/crontabs" "$name/bin"
  # A mail is a file.
  printf '#!/bin/sh\ncat >"%s/mail.$$"\n' "$here/$name" >"$name/bin/sendmail"
  printf '#!/bin/sh\necho "%s $RLOCK_TOKEN" >>"%s/nightly"\n' "$name" "$here" >"$name/bin/nightly-job"
  printf '#!/bin/sh\necho report\n' >"$name/bin/make-report"
  printf '#!/bin/sh\necho $PPID >>"%s/import"\nsetsid sleep 86461 &\n' "$here" >"$name/bin/import-job"
  mkdir -p report
  cp "$RLOCK" "$name/bin"
  chmod +x "$name"/bin/*
  # Each minute is a night, and an hour, too.
  sed "s/^0 3 \* \* \*/* * * * */; s/^0 \*/* */; s/^30 3 \* \* \*/* * * * */; s/--once-per [a-z]*/--once-per minute/; s|/srv/report|$here/report|" "$@" \
    >"$name/crontabs/rlock-nightly"
  sed -i "1i RLOCK_URL=$RLOCK_URL\nLD_PRELOAD=$CLOCK_LIBRARY\nCLOCK_SHIFT=$ahead" "$name/crontabs/rlock-nightly"
  chmod 600 "$name/crontabs/rlock-nightly"
  start unshare -mpuf --mount-proc --kill-child bash -euc '
    mount --make-rprivate /
    hostname "$1"
    for folder in /run /var/spool; do mount -t tmpfs tmpfs $folder; done
    mkdir -p /var/spool/cron/crontabs
    chmod 700 /var/spool/cron/crontabs
    # A machine without a cron of its own has no folder for it.
    mkdir "$1/etc" && mount --bind /etc "$1/etc"
    mount -t tmpfs tmpfs /etc
    ln -s "$PWD/$1"/etc/* /etc
    rm -f /etc/crontab /etc/cron.d
    cp -r "$1/crontabs" /etc/cron.d
    mount --bind "$1/bin" /usr/local/bin
    mkdir "$1/sbin" && mount --bind /usr/sbin "$1/sbin"
    mount -t tmpfs tmpfs /usr/sbin
    ln -s "$PWD/$1"/sbin/* "$PWD/$1/bin/sendmail" /usr/sbin 2>/dev/null || ln -sf "$PWD/$1/bin/sendmail" /usr/sbin
    LD_PRELOAD=$2 CLOCK_SHIFT=$3 exec cron -f' bash "$name" "$CLOCK_LIBRARY" "$ahead" >"$name/log" 2>&1
}

needs_cron() {
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  PATH=$PATH:/usr/sbin
  command -v cron >/dev/null || skip "cron is not installed"
  unshare -mpuf --mount-proc true 2>/dev/null || skip "this machine refuses new namespaces"
  # The clocks of cron and of its jobs are ahead: their next minute begins in fifteen seconds, for one test after the other.
  redis flushall >/dev/null
  ahead=$(((105 - $(date +%s) % 60) % 60))
}

# tick COMMAND…: until it succeeds, two minutes at most: a host that came too late for a tick has the next one a minute later.
tick() { eventually "$@" 2>/dev/null || eventually "$@"; }

ran() { [ "$(sort -u nightly 2>/dev/null | wc -l)" -ge "$1" ]; }
mails() { find . -name 'mail.*' | wc -l; }
# idle: each cron has sent what it sends: the child that ran a job, and mails its output, has ended.
idle() {
  local pid
  for pid in "${started[@]}"; do ! pgrep -P "$(pgrep -P "$pid")" >/dev/null || return; done
}

@test "three hosts do each job once a tick, and a skip sends no mail" {
  needs_cron
  host web1 "$crontab"
  host web2 "$crontab"
  host web3 "$crontab"
  local i ticks=${CRON_TICKS:-1}
  for ((i = 1; i <= ticks; i++)); do tick ran "$i"; done
  [ "$(wc -l <nightly)" -eq "$ticks" ] || fail "$(cat nightly)"
  # \% is a % for the shell.
  eventually test -s "report/$(date -d "$ahead seconds" +%H).html"
  eventually test -s import
  eventually idle
  [ "$(mails)" -eq 0 ] || fail "$(cat ./*/mail.*)"
  # The contained job is the child of the first process, and its daemon did not outlive it.
  [ "$(sort -u import)" = 1 ] || fail "$(cat import)"
  no_daemon() { ! pgrep -fx "sleep 86461"; }
  eventually no_daemon
}

@test "the output of a job is mailed once, and the next host does a job that failed" {
  needs_cron
  host web1 "$crontab"
  host web2 "$crontab"
  printf '#!/bin/sh\necho "first on $(hostname)"\nmkdir %s/first || exit 0\nexit 7\n' "$here" | tee web1/bin/nightly-job >web2/bin/nightly-job
  printed() { cat ./*/mail.* 2>/dev/null | grep -c '^first on'; }
  both() { [ "$(printed)" -ge 2 ]; }
  tick both
  [ "$(printed)" -eq 2 ] || fail "$(cat ./*/mail.*)"
  grep -q '^first on web1' web1/mail.* || fail "$(cat ./*/mail.*)"
  grep -q '^first on web2' web2/mail.* || fail "$(cat ./*/mail.*)"
}
