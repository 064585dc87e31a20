no-such-command
echo "$?"
/etc/passwd
