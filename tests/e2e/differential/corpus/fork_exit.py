import os, sys
print("before fork", flush=True)
pid = os.fork()
if pid == 0:
    print("child")
    sys.exit(9)
print("parent", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
