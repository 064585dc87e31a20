import os
for k in sorted(os.environ): print(k, "=", os.environ[k])
os.putenv("NEW", "1"); os.environ["NEW2"] = "2"; del os.environ["LANG"]
os.system("echo $NEW $NEW2 ${LANG-unset} ${A-unset}")
