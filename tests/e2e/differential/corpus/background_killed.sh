sleep 100 &
kill -9 $!
wait $!
echo "status $?"
