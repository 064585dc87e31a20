coproc cat
echo hello >&"${COPROC[1]}"
read -r line <&"${COPROC[0]}"
echo "$line"
exec 3<<<"here string"
cat <&3
diff <(echo a) <(echo b)
