echo before
exec python3 -c 'import sys; print("now python", sys.argv); sys.exit(7)' a b
