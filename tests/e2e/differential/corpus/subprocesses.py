import subprocess, sys
r = subprocess.run([sys.executable, "-c", "import sys; print(sys.argv, sys.flags.isolated); sys.exit(2)"], capture_output=True, text=True)
print(r)
r = subprocess.run([sys.executable, "main.py.not"], capture_output=True, text=True)
print(r)
r = subprocess.run("echo $0; cat; exit 5", shell=True, input="piped", text=True, stdout=subprocess.PIPE)
print(r)
