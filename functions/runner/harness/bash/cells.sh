# Runs the cells of a session, one after the other, in one shell.
#
# fd 250 brings the cells and fd 251 takes their ends, in the form that
# _preheat_session.py describes. What ends a shell (exit, a failure under set -e,
# an interrupt) ends its cell alone: the shell's EXIT trap keeps the state in a
# file without a name and replaces the shell by a fresh one that takes it over. It
# is the same process, whose jobs, folder and descriptors stay.
#
# Names that begin with _preheat_ are the harness's. The function trap keeps what
# a program wants to have done on EXIT, which is the harness's own.

_preheat_sequence=0 # of the cell that runs; 0 between cells
_preheat_code=0     # its exit code, where it ended with its shell
_preheat_leaving=   # what is left of such a cell: trap, running or done
_preheat_on_exit=   # the program's EXIT trap
_preheat_on_int=    # the command that sets its INT trap, between cells
_preheat_flags=     # its options that would disturb, between cells
_preheat_args=()
declare -A _preheat_env=() _preheat_before=()

# Cells come in.

# _preheat_next waits for a cell and prepares all that it needs; it fails at the end
# of the session.
_preheat_next() {
  local LC_ALL=C
  if [[ -n $_preheat_leaving ]]; then
    _preheat_leave
    return 0
  fi
  builtin trap '_preheat_interrupted=1' INT
  _preheat_length || return
  local -i left=_preheat_number
  _preheat_interrupted=
  _preheat_field || return
  local sequence=$_preheat_text
  _preheat_field
  local stdin=$_preheat_text
  _preheat_list
  _preheat_args=("${_preheat_list[@]}")
  _preheat_list
  _preheat_take $left
  _preheat_open "${stdin:-/dev/null}"
  _preheat_set_env
  # What traces commands would trace the harness.
  [[ $_preheat_flags != *x* ]] || _preheat_source="set -x; $_preheat_source"
  _preheat_flags=${_preheat_flags//x/}
  _preheat_sequence=$sequence
}

# _preheat_length reads the length of a message into _preheat_number.
_preheat_length() {
  local byte i
  _preheat_number=0
  for i in 1 2 3 4; do
    IFS= read -r -d '' -n 1 -u 250 byte || return
    printf -v byte %d "'$byte"
    _preheat_number=$((_preheat_number << 8 | byte & 255))
  done
}

# _preheat_field reads a field into _preheat_text, and takes it off $left.
_preheat_field() {
  IFS= read -r -d '' -u 250 _preheat_text || return
  left+=-${#_preheat_text}-1
}

# _preheat_list reads a number and as many fields into the array of that name.
_preheat_list() {
  local -i i n
  _preheat_list=()
  _preheat_field
  n=$_preheat_text
  for ((i = 0; i < n; i++)); do
    _preheat_field
    _preheat_list+=("$_preheat_text")
  done
}

# _preheat_take reads the source, without its NULs, as bash leaves them out of a
# script. It reads a byte at a time, so that another program is quicker for many.
_preheat_take() {
  local -i left=$1
  if ((left > 4096)); then
    _preheat_source=$(/usr/bin/head -c $left <&250; echo .)
    _preheat_source=${_preheat_source%.}
    return
  fi
  _preheat_source=
  local piece
  while ((left > 0)); do
    IFS= read -r -d '' -n $left -u 250 piece || break
    _preheat_source+=$piece
    left+=-${#piece}-1 # with its NUL, or it was the last one
  done
}

# Cells begin and end.

_preheat_open() {
  exec 0<"$1"
  [[ $1 == /dev/null ]] || /usr/bin/rm -f -- "$1"
}

# _preheat_set_env sets the entries of _preheat_list in the environment.
_preheat_set_env() {
  local entry name
  _preheat_env=() _preheat_before=()
  for entry in "${_preheat_list[@]}"; do
    name=${entry%%=*}
    [[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || continue
    [[ ! -v $name ]] || _preheat_before[$name]=$(declare -p "$name")
    export "$entry" && _preheat_env[$name]=${entry#*=}
  done
}

# _preheat_put_back takes them away again, but for what the cell has changed.
_preheat_put_back() {
  local name
  for name in "${!_preheat_env[@]}"; do
    [[ ${!name-} == "${_preheat_env[$name]}" ]] || continue
    unset -v "$name"
    [[ -z ${_preheat_before[$name]-} ]] || eval "${_preheat_before[$name]/#declare /declare -g }"
  done
  _preheat_env=()
}

# _preheat_begin puts traps and options back as the program had them.
_preheat_begin() {
  if [[ -n $_preheat_on_int ]]; then eval "$_preheat_on_int"; else builtin trap - INT; fi
  [[ -z $_preheat_interrupted ]] || kill -INT $$
  [[ -z $_preheat_flags ]] || set -$_preheat_flags
}

# _preheat_end says that the cell has ended.
_preheat_end() {
  local -i code=$?
  _preheat_pause $-
  [[ -z $_preheat_leaving ]] || code=$_preheat_code
  _preheat_leaving=
  _preheat_put_back
  local head="{\"cell\":{\"sequence\":$_preheat_sequence,\"exit_code\":$code}}"
  _preheat_sequence=0
  local length
  printf -v length '\\x%02x' 0 0 0 ${#head}
  printf "$length%s" "$head" >&251
}

# _preheat_pause keeps the options among $1 and the traps that would disturb.
_preheat_pause() {
  set +euxvf
  _preheat_flags=${1//[!euxvf]/}
  _preheat_on_int=$(builtin trap -p INT)
  builtin trap '' INT
}

# What a program wants on EXIT.

trap() {
  local _preheat_at=1 _preheat_action _preheat_signal
  [[ ${1-} != -- ]] || _preheat_at=2
  _preheat_action=${!_preheat_at-}
  if [[ $# -lt $_preheat_at || ($_preheat_at == 1 && $1 == -[!-]*) ]]; then
    _preheat_show_traps "$@"
    return
  fi
  if [[ $BASHPID != "$$" ]]; then
    builtin trap "$@"
    return
  fi
  if ((_preheat_at == $#)); then
    _preheat_action=- # trap SIGNAL
  else
    ((_preheat_at++))
  fi
  local -i _preheat_status=0
  for _preheat_signal in "${@:_preheat_at}"; do
    case ${_preheat_signal^^} in
      0 | EXIT | SIGEXIT) _preheat_on_exit=${_preheat_action#-} ;;
      *) builtin trap -- "$_preheat_action" "$_preheat_signal" || _preheat_status=1 ;;
    esac
  done
  return $_preheat_status
}

_preheat_show_traps() {
  local ours="trap -- '_preheat_exit' EXIT" theirs= text
  [[ -z $_preheat_on_exit ]] || theirs="trap -- ${_preheat_on_exit@Q} EXIT"
  text=$(builtin trap "$@") || return
  text=${text/"$ours"/"$theirs"}
  text=${text#$'\n'}
  [[ -z $text ]] || printf '%s\n' "$text"
}

# _preheat_leave makes the program's EXIT trap what is left of a cell.
_preheat_leave() {
  _preheat_source=:
  if [[ $_preheat_leaving == trap ]]; then
    _preheat_source="_preheat_return $_preheat_code; $_preheat_on_exit"
    _preheat_leaving=running
  fi
}

_preheat_return() { return "$1"; }

# Shells end.

# _preheat_exit runs where the shell would end.
_preheat_exit() {
  local -i _preheat_status=$?
  _preheat_pause $- 2>/dev/null
  if ((_preheat_sequence == 0)); then
    eval "$_preheat_on_exit" # the end of the session
    return
  fi
  _preheat_code=$_preheat_status
  if [[ -z $_preheat_leaving && -n $_preheat_on_exit ]]; then
    _preheat_leaving=trap
  else
    _preheat_leaving=done
  fi
  local _preheat_state
  _preheat_state=$(_preheat_dump 2>/dev/null)
  exec 252<<<"$_preheat_state"
  exec /bin/bash -c "$BASH_EXECUTION_STRING" "$0"
}

# _preheat_dump prints commands that give a fresh shell the state of this one.
_preheat_dump() {
  local _preheat_name _preheat_names
  echo 'shopt -s extglob' # functions may need it to be read
  declare -f
  mapfile -t _preheat_names < <(declare -F)
  for _preheat_name in "${_preheat_names[@]}"; do
    [[ $_preheat_name == 'declare -f '* ]] || echo "$_preheat_name" # exported
  done
  mapfile -t _preheat_names < <(compgen -v)
  for _preheat_name in "${_preheat_names[@]}"; do
    _preheat_variable "$_preheat_name"
  done
  declare -p _preheat_{sequence,code,leaving,on_exit,on_int,flags,env,before}
  for ((_preheat_name = ${#DIRSTACK[@]} - 1; _preheat_name > 0; _preheat_name--)); do
    printf 'pushd -n -- %q >/dev/null\n' "${DIRSTACK[_preheat_name]}"
  done
  alias -p
  shopt -p
  set +o
  builtin trap -p
}

# _preheat_variable prints what declares a variable, if it is the program's.
_preheat_variable() {
  case $1 in
    _preheat_* | _ | BASH | BASHOPTS | BASHPID | BASH_[ACLRSV]* | BASH_EX* | COMP_WORDBREAKS | DIRSTACK | EPOCH* | EUID | FUNCNAME | \
      GROUPS | HISTCMD | LINENO | PIPESTATUS | PPID | RANDOM | SHELLOPTS | SHLVL | SRANDOM | UID) return ;;
  esac
  if ((${#FUNCNAME[@]} > 3)); then
    _preheat_unhide "$1" || return
  fi
  declare -p "$1"
}

# _preheat_unhide takes away what hides a global variable: those of functions that
# have not returned. It fails if there is no global one.
_preheat_unhide() {
  declare -gt "$1" # an attribute that serves no other purpose
  until [[ -v $1 && ${!1@a} == *t* ]]; do
    if [[ -R $1 ]]; then unset -n "$1"; else unset -v "$1"; fi || return
    declare -p "$1" >&- || return
  done
  declare -g +t "$1"
}

builtin trap _preheat_exit EXIT
if [[ -e /dev/fd/252 ]]; then
  mapfile -d '' -t -u 252 _preheat_state
  exec 252<&-
  {
    eval "${_preheat_state[0]}"
    builtin trap _preheat_exit EXIT
    unset _preheat_state
  } 2>/dev/null
fi
