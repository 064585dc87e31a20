trap 'echo "trapped $?"' EXIT
trap 'echo "err at $LINENO"' ERR
false
echo to-stderr >&2
exit 42
