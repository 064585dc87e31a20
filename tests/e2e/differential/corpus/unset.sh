set -u
echo "$nope"
