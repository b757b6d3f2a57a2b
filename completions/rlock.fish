# Completion of rlock(1) for fish, as `rlock completion fish` prints it.

# ---- completion ----

# Prints the command word and the operands before the cursor, one a line; fails after `--`.
function __rlock_words
    set -l command
    set -l value no
    set -l tokens (commandline -opc)
    set -e tokens[1]
    for word in $tokens
        if test $value = yes
            set value no
        else if test "$word" = --
            return 1
        else if string match -qr -- '^-.' $word
            __rlock_takes_value "$command" $word; and set value yes
        else
            test -n "$command"; or set command $word
            echo $word
        end
    end
    return 0
end

function __rlock_at_command
    set -l words (__rlock_words); and test (count $words) -eq 0
end

# True for one of these commands, before `--`.
function __rlock_in
    set -l words (__rlock_words); and contains -- "$words[1]" $argv
end

# After a single dash only the common options are offered, which -h lists, too.
function __rlock_beyond_dash
    test "$(commandline -ct)" != -
end

# True for one of these commands, where any of their options may be offered.
function __rlock_all_of
    __rlock_beyond_dash; and __rlock_in $argv
end

# True for one of these commands, without an operand yet.
function __rlock_at_operand
    set -l words (__rlock_words); and test (count $words) -eq 1; and contains -- $words[1] $argv
end

function __rlock_after_name
    set -l words (__rlock_words); and test (count $words) -eq 2; and test $words[1] = run
end

function __rlock_after_dashes
    not __rlock_words >/dev/null
end

function __rlock_names
    set -l tokens (commandline -opc)
    set -e tokens[1]
    rlock __complete $tokens 2>/dev/null
end

# After `--`: for run, a command line of its own; for other commands, names of locks.
function __rlock_rest
    set -l words (__rlock_words)
    if test "$words[1]" != run
        __rlock_names
        return
    end
    set -l tokens (commandline -opc)
    set -l dashes (contains -i -- -- $tokens)
    set -e tokens[1..$dashes]
    complete -C (string join ' ' -- (string escape -- $tokens) (commandline -ct))
end

# ---- generated from the options table ----

# True if the word after option word $argv[2] of command $argv[1] is its value.
function __rlock_takes_value
    switch "$argv"
        case '* --*=*'
            return 1
        case 'run --wait' 'acquire --wait' 'close --wait' 'run --conflict-exit-code' 'acquire --conflict-exit-code' 'run --exit-code' 'acquire --exit-code' 'run --ttl' 'acquire --ttl' 'renew --ttl' 'doctor --ttl' 'run --max-run' 'run --kill-after' 'doctor --kill-after' 'run --stop-after' 'run --on-lost' 'run --min-hold' 'acquire --min-hold' 'run --slots' 'acquire --slots' 'run --max-queue' 'acquire --max-queue' 'run --ticket' 'acquire --ticket' 'run --once' 'forget --once' 'run --once-per' 'run --once-within' 'run --max-failures' 'run --format' 'acquire --format' 'renew --format' 'release --format' 'status --format' 'watch --format' 'force-unlock --format' 'acquire --renew-while' 'run --event-log' 'run --history' 'renew --owner' 'release --owner' 'status --owner' 'force-unlock --owner' 'renew --token' 'force-unlock --token' 'queue --remove' 'queue --first' 'history --runs' 'metrics --output' 'check --within' 'check --max-held' 'check --max-wait' 'check --max-waiters' 'close --for' 'close --until' 'run --reason' 'acquire --reason' 'queue --reason' 'force-unlock --reason' 'close --reason' 'open --reason' '* --url' '* --user' '* --password-file' '* --password-command' '* --cacert' '* --cert' '* --key' '* --sni' '* --prefix' '* --connect-timeout' '* --replicas' '* --config'
            return 0
        case '* --*'
            return 1
        case 'run -*w' 'acquire -*w' 'close -*w' 'run -*E' 'acquire -*E' 'run -*c' 'run -*t' 'acquire -*t' 'renew -*t' 'doctor -*t' 'run -*k' 'doctor -*k' 'history -*n' '* -*u'
            return 0
    end
    return 1
end

complete -c rlock -f
complete -c rlock -n __rlock_at_command -a run -d 'hold the lock while a command runs'
complete -c rlock -n __rlock_at_command -a acquire -d 'hold a lock across separate steps'
complete -c rlock -n __rlock_at_command -a renew -d 'extend the lease of a lock that was acquired'
complete -c rlock -n __rlock_at_command -a release -d 'release a lock that was acquired'
complete -c rlock -n __rlock_at_command -a status -d 'show which locks are held, and by whom'
complete -c rlock -n __rlock_at_command -a queue -d 'list waiting runs in order'
complete -c rlock -n __rlock_at_command -a watch -d 'show locks as they change'
complete -c rlock -n __rlock_at_command -a force-unlock -d 'break a lock, as an operator'
complete -c rlock -n __rlock_at_command -a close -d 'stop granting a lock until a given time'
complete -c rlock -n __rlock_at_command -a open -d 'open a lock that close has closed'
complete -c rlock -n __rlock_at_command -a history -d 'show the last runs'
complete -c rlock -n __rlock_at_command -a forget -d 'let done work be done again'
complete -c rlock -n __rlock_at_command -a metrics -d 'print metrics for Prometheus'
complete -c rlock -n __rlock_at_command -a check -d 'check a lock for Nagios, Icinga and others'
complete -c rlock -n __rlock_at_command -a doctor -d 'check whether the server can hold locks safely'
complete -c rlock -n __rlock_at_command -a config -d 'show each setting and where it comes from'
complete -c rlock -n __rlock_at_command -a stop-local -d 'stop the private server of local:'
complete -c rlock -n __rlock_at_command -a completion -d 'print a completion script for a shell'
complete -c rlock -n __rlock_at_command -a help -d 'explain a command, an exit code or a page of the manual'
complete -c rlock -n __rlock_at_command -a version -d 'print the version of rlock'
complete -c rlock -n '__rlock_in run acquire' -s n -l nonblock -d 'exit with 75 immediately if the lock is busy'
complete -c rlock -n '__rlock_in run acquire close' -s w -l wait -x -d 'wait at most DUR, then exit with 75'
complete -c rlock -n '__rlock_all_of run acquire' -s E -l conflict-exit-code -x -d 'exit with N (0-255) instead of 75 if the lock is busy, as with flock'
complete -c rlock -n '__rlock_all_of run acquire' -l exit-code -x -d 'exit with N if the command did not run because of WHAT'
complete -c rlock -n '__rlock_in run' -s c -x -d 'run TEXT with $SHELL (or /bin/sh, if it is not set) instead of a COMMAND'
complete -c rlock -n '__rlock_in run acquire renew doctor' -s t -l ttl -x -d 'length of the lease, at least 1s'
complete -c rlock -n '__rlock_all_of run' -l no-renew -d 'do not renew the lease: stop the command before the lease expires (after 52s of 60s), exit with 76'
complete -c rlock -n '__rlock_in run' -l max-run -x -d 'stop the command after DUR and exit with 124'
complete -c rlock -n '__rlock_all_of run doctor' -s k -l kill-after -x -d 'time from TERM to KILL when rlock stops the command'
complete -c rlock -n '__rlock_all_of run' -l stop-after -x -d 'after a TERM to rlock, kill the command if it runs for longer than DUR'
complete -c rlock -n '__rlock_all_of run' -l on-lost -x -a 'terminate ignore' -d 'if the lease is lost: terminate the command, or ignore the loss and print a warning'
complete -c rlock -n '__rlock_all_of run acquire' -l min-hold -x -d 'keep the lock for at least DUR, even if the command exits sooner'
complete -c rlock -n '__rlock_in run acquire' -l slots -x -d 'allow up to N holders'
complete -c rlock -n '__rlock_in run acquire' -s s -l shared -d 'acquire the lock as shared: any number of shared holders, but no exclusive one'
complete -c rlock -n '__rlock_all_of run acquire' -l max-queue -x -d 'exit with 75 immediately if N runs are already waiting'
complete -c rlock -n '__rlock_all_of run acquire' -l ticket -r -F -d 'after --wait has expired, keep the position in the queue in FILE'
complete -c rlock -n '__rlock_in run forget' -l once -x -d 'skip the command and exit with 0 if a run of NAME with this KEY has succeeded'
complete -c rlock -n '__rlock_in run' -l once-per -x -a 'minute 15m hour 6h day week month' -d 'run the command once in each calendar period'
complete -c rlock -n '__rlock_all_of run' -l once-within -x -d 'skip the command and exit with 0 if a run of NAME succeeded within DUR'
complete -c rlock -n '__rlock_all_of run' -l max-failures -x -d 'with --once, --once-per or --once-within: after N failed runs, exit with 75'
complete -c rlock -n '__rlock_all_of run acquire' -l supersede -d 'keep only the newest waiter that has this option'
complete -c rlock -n '__rlock_all_of run acquire' -l while-closed -d 'acquire the lock even if it is closed (rlock close)'
complete -c rlock -n '__rlock_all_of run acquire' -l urgent -d 'queue as if this run had arrived DUR earlier (1h without DUR, at most 24h)'
complete -c rlock -n '__rlock_in run' -l wait-descendants -d 'hold the lock until every process that the command started has exited'
complete -c rlock -n '__rlock_all_of run' -l contain -d 'run the command in its own pid namespace'
complete -c rlock -n '__rlock_all_of run acquire renew release status watch force-unlock' -l format -x -a 'native plain redisson' -d 'how the lock is stored: as rlock does (native); as redsync, redis-py and node-redlock do (plain); or as Redisson does (redisson). With plain and redisson, NAME is the key itself'
complete -c rlock -n '__rlock_all_of run' -l fail-open -d 'if no server answers for DUR, warn and run the command without the lock'
complete -c rlock -n '__rlock_all_of run acquire' -l hide-command -d 'do not store the command line'
complete -c rlock -n '__rlock_in acquire' -l renew-while -x -d 'renew the lease in the background while the process PID lives, then release the lock'
complete -c rlock -n '__rlock_all_of run' -l event-log -r -F -d 'append one JSON line to FILE for each event'
complete -c rlock -n '__rlock_all_of run' -l report -d 'print one line if the command fails, even with --quiet'
complete -c rlock -n '__rlock_all_of run' -l history -x -d 'keep N rows (0-1000) of NAME\'s history from this run on'
complete -c rlock -n '__rlock_in renew release status force-unlock' -l owner -x -d 'only this owner'
complete -c rlock -n '__rlock_in renew force-unlock' -l token -x -d 'only the holder with this fencing token'
complete -c rlock -n '__rlock_in status force-unlock' -l all -d 'break the lock of every holder'
complete -c rlock -n '__rlock_in force-unlock' -l now -d 'free the lock immediately: the old and the next command may overlap'
complete -c rlock -n '__rlock_in queue' -l remove -x -d 'remove this waiter: its owner id, the first characters of it, or its position'
complete -c rlock -n '__rlock_in queue' -l first -x -d 'move this waiter to the head of the queue: its owner id, the first characters of it, or its position'
complete -c rlock -n '__rlock_in history' -s n -l runs -x -d 'how many runs to show'
complete -c rlock -n '__rlock_in force-unlock forget' -l yes -d 'do not ask for confirmation; required when not on a terminal'
complete -c rlock -n '__rlock_in doctor' -l strict -d 'exit with 1 for a warning, too'
complete -c rlock -n '__rlock_in metrics' -l output -r -F -d 'write to FILE, replacing it as a whole'
complete -c rlock -n '__rlock_in check' -l within -x -d 'exit with 2 unless a run succeeded within DUR'
complete -c rlock -n '__rlock_in check' -l max-held -x -d 'exit with 1 if a run has held the lock for longer than DUR'
complete -c rlock -n '__rlock_in check' -l max-wait -x -d 'exit with 1 if a run has waited for longer than DUR'
complete -c rlock -n '__rlock_in check' -l max-waiters -x -d 'exit with 1 if more than N runs are waiting'
complete -c rlock -n '__rlock_in check' -l critical -d 'exit with 2 instead of 1'
complete -c rlock -n '__rlock_in close' -l for -x -d 'open the lock again after DUR, at most 30d'
complete -c rlock -n '__rlock_in close' -l until -x -d 'open the lock again at TIME: 18:00, 2026-11-24T06:00 or, in UTC, 2026-11-24T06:00:00Z'
complete -c rlock -n '__rlock_all_of close' -l replace -d 'shorten a closure of another user or host, too'
complete -c rlock -n '__rlock_in run acquire queue force-unlock close open' -l reason -x -d 'free text shown to others in status, queue and messages'
complete -c rlock -s u -l url -x -d 'the server: redis://HOST[:PORT][/DB], rediss:// for TLS, unix:///PATH, local: and others; give three or more for a quorum'
complete -c rlock -n __rlock_beyond_dash -l user -x -d 'ACL user, instead of the one in the URL'
complete -c rlock -n __rlock_beyond_dash -l password-file -r -F -d 'read the password from FILE each time rlock connects (RLOCK_PASSWORD contains the password itself)'
complete -c rlock -n __rlock_beyond_dash -l password-command -x -d 'read the password from the first line that CMD prints'
complete -c rlock -n __rlock_beyond_dash -l cacert -r -F -d 'TLS: trust the CA certificates in FILE, instead of the system\'s'
complete -c rlock -n __rlock_beyond_dash -l cert -r -F -d 'TLS: client certificate to present'
complete -c rlock -n __rlock_beyond_dash -l key -r -F -d 'TLS: private key of the client certificate'
complete -c rlock -n __rlock_beyond_dash -l sni -x -d 'TLS: name to request from the server and to verify in its certificate'
complete -c rlock -n __rlock_beyond_dash -l insecure -d 'TLS: do not verify the server\'s certificate (prints a warning)'
complete -c rlock -n __rlock_beyond_dash -l prefix -x -d 'prefix of the keys on the server'
complete -c rlock -n __rlock_beyond_dash -l connect-timeout -x -d 'time limit to reach one server: DNS, connect, TLS and login'
complete -c rlock -n __rlock_beyond_dash -l replicas -x -d 'a grant, a renewal and a release count once N replicas have confirmed them'
complete -c rlock -n __rlock_beyond_dash -l config -r -F -d 'read only this configuration file, instead of rlock/rlock.toml in ~/.config or /etc'
complete -c rlock -l json -d 'print JSON on standard output'
complete -c rlock -s q -l quiet -d 'print only errors'
complete -c rlock -n __rlock_beyond_dash -s v -l verbose -d 'report each step on standard error, with the time'
complete -c rlock -s h -l help -d 'print help: -h in short, --help in full'
complete -c rlock -n __rlock_beyond_dash -s V -l version -d 'print the version'
complete -c rlock -n '__rlock_in status' -a '(__rlock_names)'
complete -c rlock -n '__rlock_in watch' -a '(__rlock_names)'
complete -c rlock -n '__rlock_in close' -a '(__rlock_names)'
complete -c rlock -n '__rlock_in open' -a '(__rlock_names)'
complete -c rlock -n '__rlock_in metrics' -a '(__rlock_names)'
complete -c rlock -n '__rlock_at_operand completion' -a 'bash zsh fish'
complete -c rlock -n '__rlock_at_operand help' -a 'exit-codes run acquire renew release status queue watch force-unlock close open history forget metrics check doctor config stop-local completion rlock recipes guarantees formats protocol stability toml 64 65 69 70 71 75 76 77 78 124 126 127'
complete -c rlock -n '__rlock_at_operand run acquire renew release queue force-unlock history forget check' -a '(__rlock_names)'
complete -c rlock -n '__rlock_after_name' -a '--'
complete -c rlock -n '__rlock_after_dashes' -a '(__rlock_rest)'
