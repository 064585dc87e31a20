"""The last module that site imports before the interpreter runs its script."""

import os

if "_PREHEAT" in os.environ:
    import _preheat

    _preheat.enter()
