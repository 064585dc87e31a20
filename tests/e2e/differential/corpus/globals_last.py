print([k for k in globals()], dir(__builtins__)[-3:] and hasattr(__builtins__, "__preheat_begin__"), hasattr(__builtins__, "__preheat_display__"))
None
