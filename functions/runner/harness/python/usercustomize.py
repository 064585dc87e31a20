"""The last module that site imports before the interpreter runs its script."""

import os
import sys

if "_PREHEAT" in os.environ:
    import _preheat

    _preheat.enter()
else:
    # A Python that a program started: what it prints comes in its place, too.
    import _preheat_stdio

    _preheat_stdio.replace()


class _Figures:
    """Has figures collected once matplotlib is there."""

    def find_spec(self, name, path=None, target=None):
        if name != "matplotlib.backend_bases":
            return None
        sys.meta_path.remove(self)
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                sys.modules[name] = module
                import _preheat_matplotlib

            spec.loader.exec_module = exec_module
        return spec


if "matplotlib.backend_bases" in sys.modules:
    import _preheat_matplotlib
else:
    sys.meta_path.insert(0, _Figures())
