read -r first
echo "first=$first"
cat
printf '\377\0end'
