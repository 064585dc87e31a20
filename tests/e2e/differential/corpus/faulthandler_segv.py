import ctypes, faulthandler
faulthandler.enable()
ctypes.string_at(0)
