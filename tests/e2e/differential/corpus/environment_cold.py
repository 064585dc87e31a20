import locale, os, sys
print(sys.flags.optimize, sys.flags.dont_write_bytecode, sys.flags.hash_randomization, hash("x"), locale.setlocale(locale.LC_ALL, ""))
for k in sorted(os.environ): print(k, "=", os.environ[k])
assert False, "asserts are off"
