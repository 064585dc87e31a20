import os, pwd, sys, tempfile, time, locale, getpass, socket
print(os.getcwd(), os.getuid(), os.getgid(), os.getgroups(), pwd.getpwuid(os.getuid()).pw_name, getpass.getuser(), os.path.expanduser("~"))
print(tempfile.gettempdir(), time.tzname, sys.getfilesystemencoding(), locale.getpreferredencoding(), sys.getdefaultencoding(), socket.gethostname())
print(os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid(), os.getppid(), os.nice(0), os.umask(0o22), os.cpu_count() > 0, os.sched_getaffinity(0) != set())
import resource
print([resource.getrlimit(getattr(resource, n)) for n in ("RLIMIT_NOFILE", "RLIMIT_CORE", "RLIMIT_STACK", "RLIMIT_NPROC", "RLIMIT_AS")])
