printf '%s\n' c a b | sort | tee sorted.txt | awk '{print NR": "$0}'
echo '{"a":[1,2]}' | jq -c '.a|add'
seq 3 | paste -sd+ | bc
env | sort | grep -v ^_=
pwd; umask; ulimit -n; date +%Z; id -un; hostname
