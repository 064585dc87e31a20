#!/bin/bash
# Begins a session: cells.sh says what it is. The shell that runs the cells has no
# script, so that its messages name none, and the pipes get numbers that programs
# seldom use.
exec 250<&3 251>&4 3<&- 4>&-
unset _PREHEAT_SESSION
# It is one line, so that the lines of a cell count from one.
_preheat_loop='. /opt/preheat/bash/cells.sh; while { _preheat_next; } 2>/dev/null; do set -- "${_preheat_args[@]}"; _preheat_begin; eval "$_preheat_source"; { _preheat_end; } 2>/dev/null; done'
exec /bin/bash -c "$_preheat_loop" bash
