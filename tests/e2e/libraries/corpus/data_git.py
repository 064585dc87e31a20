import subprocess
run = lambda *a: subprocess.run(a, check=True, capture_output=True, text=True).stdout
run("git", "init", "-q", "/tmp/r")
run("git", "-C", "/tmp/r", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
assert "first" in run("git", "-C", "/tmp/r", "log", "--oneline")
assert run("curl", "--version").startswith("curl 8")
