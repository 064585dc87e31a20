import gc, sys
print(gc.isenabled(), gc.get_threshold(), gc.garbage, sys.gettrace(), sys.getprofile(), sys.getswitchinterval())
import threading
print(threading.main_thread() is threading.current_thread(), threading.active_count(), threading.main_thread().ident == threading.get_ident())
