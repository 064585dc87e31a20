import os, time
print(time.tzname, time.localtime(0)[:6], os.environ["MPLBACKEND"])
1 / 0
