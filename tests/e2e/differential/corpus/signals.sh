trap 'echo term' TERM
kill -TERM $$
trap - TERM
kill -TERM $$
echo never
