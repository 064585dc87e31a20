sleep 0.05 && echo "from background" &
wait
(exit 3) &
wait $!
echo "status $?"
jobs
