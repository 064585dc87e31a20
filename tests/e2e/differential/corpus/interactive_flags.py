import sys
print(hasattr(sys, "ps1"), sys.flags.interactive, sys.flags.inspect, sys.warnoptions, sys._xoptions, sys.dont_write_bytecode)
import site; print(site.ENABLE_USER_SITE, site.USER_SITE)
exit(3)
