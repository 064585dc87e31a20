"""A docstring that stays the module's."""
from __future__ import annotations
import sys
print(__doc__, annotations, sorted(k for k in globals()))
def f(x: undefined) -> 1/0: pass
print(f.__annotations__)
f
