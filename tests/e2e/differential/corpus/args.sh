echo "$0" "$#" "$@" "$BASH_SOURCE" "$-" "$SHLVL"
