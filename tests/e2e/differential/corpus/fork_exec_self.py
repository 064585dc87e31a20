import os, sys
if len(sys.argv) == 1:
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, __file__, "again"])
print(sys.argv, sys.executable, __name__)
