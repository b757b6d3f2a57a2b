# Completion of rlock(1) for bash, as `rlock completion bash` prints it.
# shellcheck shell=bash disable=SC2034 # functions set variables of their callers

# ---- generated from the options table ----

_rlock_commands=(
  run
  acquire
  renew
  release
  status
  queue
  watch
  force-unlock
  close
  open
  history
  forget
  metrics
  check
  doctor
  config
  stop-local
  completion
  help
  version
)

# common, others: each option of command $1 with what it takes; the common ones are those that -h lists.
_rlock_rows() {
  common=() others=()
  common+=(
    '-u,--url URL'
    '-q,--quiet '
    '-h,--help '
  )
  others+=(
    '--user NAME'
    '--password-file FILE'
    '--password-command CMD'
    '--cacert FILE'
    '--cert FILE'
    '--key FILE'
    '--sni NAME'
    '--insecure '
    '--prefix TEXT'
    '--connect-timeout DUR'
    '--config FILE'
    '-v,--verbose '
    '-V,--version '
  )
  case $1 in
    run)
      common+=(
        '-n,--nonblock '
        '-w,--wait DUR'
        '-c TEXT'
        '-t,--ttl DUR'
        '--max-run DUR'
        '--slots N'
        '-s,--shared '
        '--once KEY'
        '--once-per minute|15m|hour|6h|day|week|month'
        '--wait-descendants '
        '--reason TEXT'
      )
      others+=(
        '-E,--conflict-exit-code N'
        '--exit-code WHAT=N'
        '--no-renew '
        '-k,--kill-after DUR'
        '--stop-after DUR'
        '--on-lost terminate|ignore'
        '--min-hold DUR'
        '--max-queue N'
        '--ticket FILE'
        '--once-within DUR'
        '--max-failures N'
        '--supersede '
        '--while-closed '
        '--urgent '
        '--contain '
        '--format native|plain|redisson'
        '--fail-open '
        '--hide-command '
        '--event-log FILE'
        '--report '
        '--history N'
        '--replicas N'
      )
      ;;
    acquire)
      common+=(
        '-n,--nonblock '
        '-w,--wait DUR'
        '-t,--ttl DUR'
        '--slots N'
        '-s,--shared '
        '--renew-while PID'
        '--reason TEXT'
        '--json '
      )
      others+=(
        '-E,--conflict-exit-code N'
        '--exit-code WHAT=N'
        '--min-hold DUR'
        '--max-queue N'
        '--ticket FILE'
        '--supersede '
        '--while-closed '
        '--urgent '
        '--format native|plain|redisson'
        '--hide-command '
        '--replicas N'
      )
      ;;
    renew)
      common+=(
        '-t,--ttl DUR'
        '--owner ID'
        '--token N'
        '--json '
      )
      others+=(
        '--format native|plain|redisson'
        '--replicas N'
      )
      ;;
    release)
      common+=(
        '--owner ID'
        '--json '
      )
      others+=(
        '--format native|plain|redisson'
        '--replicas N'
      )
      ;;
    status)
      common+=(
        '--owner ID'
        '--all '
        '--json '
      )
      others+=(
        '--format native|plain|redisson'
      )
      ;;
    queue)
      common+=(
        '--remove OWNER'
        '--first OWNER'
        '--reason TEXT'
        '--json '
      )
      ;;
    watch)
      common+=(
        '--json '
      )
      others+=(
        '--format native|plain|redisson'
      )
      ;;
    force-unlock)
      common+=(
        '--owner ID'
        '--token N'
        '--all '
        '--now '
        '--yes '
        '--reason TEXT'
        '--json '
      )
      others+=(
        '--format native|plain|redisson'
      )
      ;;
    close)
      common+=(
        '-w,--wait DUR'
        '--for DUR'
        '--until TIME'
        '--reason TEXT'
        '--json '
      )
      others+=(
        '--replace '
      )
      ;;
    open)
      common+=(
        '--reason TEXT'
        '--json '
      )
      ;;
    history)
      common+=(
        '-n,--runs N'
        '--json '
      )
      ;;
    forget)
      common+=(
        '--once KEY'
        '--yes '
        '--json '
      )
      ;;
    metrics)
      common+=(
        '--output FILE'
      )
      ;;
    check)
      common+=(
        '--within DUR'
        '--max-held DUR'
        '--max-wait DUR'
        '--max-waiters N'
        '--critical '
      )
      ;;
    doctor)
      common+=(
        '-t,--ttl DUR'
        '--strict '
        '--json '
      )
      others+=(
        '-k,--kill-after DUR'
        '--replicas N'
      )
      ;;
    config)
      common+=(
        '--json '
      )
      ;;
    stop-local)
      ;;
    completion)
      common+=(
        '--json '
      )
      ;;
    *)
      common+=(
        '--json '
      )
      others+=(
        '--replicas N'
      )
      ;;
  esac
}

# operands: what command $1 takes besides its options.
_rlock_operands() {
  case $1 in
    run) operands='NAME -- COMMAND' ;;
    acquire) operands='NAME' ;;
    renew) operands='NAME' ;;
    release) operands='NAME' ;;
    status) operands='NAME...' ;;
    queue) operands='NAME' ;;
    watch) operands='NAME...' ;;
    force-unlock) operands='NAME' ;;
    close) operands='NAME...' ;;
    open) operands='NAME...' ;;
    history) operands='NAME' ;;
    forget) operands='NAME' ;;
    metrics) operands='NAME...' ;;
    check) operands='NAME' ;;
    doctor) operands='' ;;
    config) operands='' ;;
    stop-local) operands='' ;;
    completion) operands='bash|zsh|fish' ;;
    help) operands='exit-codes|run|acquire|renew|release|status|queue|watch|force-unlock|close|open|history|forget|metrics|check|doctor|config|stop-local|completion|rlock|recipes|guarantees|formats|protocol|stability|toml|64|65|69|70|71|75|76|77|78|124|126|127' ;;
    version) operands='' ;;
    *) operands='' ;;
  esac
}

# ---- completion ----

# metavar: what option $2 of command $1 takes; empty for nothing.
_rlock_find() {
  local row
  local -a common others
  metavar=''
  _rlock_rows "$1"
  for row in "${common[@]}" "${others[@]}"; do
    [[ ",${row%% *}," == *",$2,"* ]] || continue
    metavar=${row#* }
    return
  done
}

# metavar: what the word after option word $2 of command $1 is; empty when it is no value.
_rlock_next() {
  local i
  metavar=''
  case $2 in
    --*=*) ;;
    --*) _rlock_find "$1" "$2" ;;
    *)
      for ((i = 1; i < ${#2}; i++)); do
        _rlock_find "$1" "-${2:i:1}"
        [[ -z $metavar ]] || break
      done
      ((i + 1 >= ${#2})) || metavar='' # the value is in the same word
      ;;
  esac
}

# words: the words of $1 as a shell reads them, the last one as far as it is typed. typed: the last one with its
# quotes; quote: the quote that is open. Nothing is expanded: pressing TAB must not run anything.
_rlock_split() {
  local text=$1 word='' char i
  words=() typed='' quote=''
  for ((i = 0; i < ${#text}; i++)); do
    char=${text:i:1}
    if [[ -z $quote && $char == [[:space:]] ]]; then
      [[ -z $typed ]] || words+=("$word")
      word='' typed=''
      continue
    fi
    typed+=$char
    if [[ -n $quote && $char == "$quote" ]]; then
      quote=''
    elif [[ -z $quote && $char == [\'\"] ]]; then
      quote=$char
    elif [[ $char == \\ && $quote != \' ]]; then
      ((++i))
      typed+=${text:i:1}
      word+=${text:i:1}
    else
      word+=$char
    fi
  done
  words+=("$word")
}

# quoted: $1, quoted for use inside the quote $2 (empty: unquoted).
_rlock_quote() {
  quoted=$1
  case $2 in
    \') quoted=${quoted//\'/\'\\\'\'} ;;
    \")
      quoted=${quoted//\\/\\\\}
      quoted=${quoted//\"/\\\"}
      quoted=${quoted//\$/\\\$}
      quoted=${quoted//\`/\\\`}
      ;;
    *) [[ -z $1 ]] || printf -v quoted %q "$1" ;;
  esac
}

# COMPREPLY: those of $2… that begin with the word being typed, quoted like it. readline replaces only $1, the part
# of the word after the last of COMP_WORDBREAKS, so the part before it is left out.
_rlock_offer() {
  local front=${typed%"$1"} current=${words[${#words[@]} - 1]} open=$quote candidate quoted
  local -a words
  local typed quote
  _rlock_split "$front"
  front=${words[${#words[@]} - 1]}
  shift
  for candidate; do
    [[ $candidate == "$current"* ]] || continue
    _rlock_quote "${candidate#"$front"}" "$open"
    COMPREPLY+=("$quoted")
  done
}

_rlock_offer_names() {
  local -a names
  mapfile -t names < <(rlock __complete "${words[@]:1:${#words[@]}-2}" 2>/dev/null)
  _rlock_offer "$1" "${names[@]}"
}

# The value of an option: $2 is its metavar, $3 what precedes the value in the same word.
_rlock_offer_values() {
  local -a values
  case $2 in
    FILE) compopt -o default ;;
    *'|'*)
      IFS='|' read -r -a values <<<"$2"
      _rlock_offer "$1" "${values[@]/#/$3}"
      ;;
  esac
}

# After a single dash the common options only.
_rlock_offer_options() {
  local row
  local -a common others options
  _rlock_rows "$2"
  [[ ${words[${#words[@]} - 1]} != - ]] || others=()
  for row in "${common[@]}" "${others[@]}"; do
    row=${row%% *}
    options+=("${row%,*}" "${row#*,}")
  done
  _rlock_offer "$1" "${options[@]}"
}

# The next operand of command $2, after $3 operands.
_rlock_offer_operands() {
  local operands
  local -a values
  _rlock_operands "$2"
  case $operands,$3 in
    [a-z]*,0)
      IFS='|' read -r -a values <<<"$operands"
      _rlock_offer "$1" "${values[@]}"
      ;;
    NAME...,* | NAME*,0) _rlock_offer_names "$1" ;;
    'NAME -- COMMAND,1') _rlock_offer "$1" -- ;;
  esac
}

# The words after `--` are completed as a command line of their own.
_rlock_offer_command() {
  local i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} != -- ]] || break
  done
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset $((i + 1))
  elif declare -F _command_offset >/dev/null; then
    _command_offset $((i + 1))
  elif ((i + 1 == COMP_CWORD)) && [[ $1 != */* ]]; then
    mapfile -t COMPREPLY < <(compgen -c -- "$1" | sort -u)
  else
    compopt -o default
  fi
}

# Reads the words before the last one. command, operands: the command word and the number of operands;
# metavar: of the option whose value the last word is; dashes: there was a `--`.
_rlock_read_words() {
  local last=$((${#words[@]} - 1)) word i
  command='' operands=0 metavar='' dashes=''
  for ((i = 1; i < last; i++)); do
    word=${words[i]}
    if [[ $word == -- ]]; then
      dashes=yes
      return
    elif [[ $word == -?* ]]; then
      _rlock_next "$command" "$word"
      [[ -z $metavar ]] || ((++i))
    elif [[ -z $command ]]; then
      command=$word
    else
      ((++operands))
    fi
  done
  ((i > last)) || metavar=''
}

_rlock() {
  local -a words
  local typed quote metavar command operands dashes
  COMPREPLY=()
  _rlock_split "${COMP_LINE:0:COMP_POINT}"
  _rlock_read_words
  local word=${words[${#words[@]} - 1]}
  if [[ -n $dashes && $command == run ]]; then
    _rlock_offer_command "$2"
  elif [[ -n $metavar ]]; then
    _rlock_offer_values "$2" "$metavar" ''
  elif [[ -z $dashes && $word == --*=* ]]; then
    _rlock_find "$command" "${word%%=*}"
    _rlock_offer_values "$2" "$metavar" "${word%%=*}="
  elif [[ -z $dashes && $word == -* ]]; then
    _rlock_offer_options "$2" "$command"
  elif [[ -z $command ]]; then
    _rlock_offer "$2" "${_rlock_commands[@]}"
  else
    _rlock_offer_operands "$2" "$command" "$operands"
  fi
}

complete -F _rlock rlock
