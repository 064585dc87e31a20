"""Makes the figures of matplotlib results, whatever the backend.

As a backend of its own (MPLBACKEND) it is Agg whose show() sends the figures
and closes them. With another one that a program chose and that shows nothing,
they are sent and stay open. Figures that are still open when the program
ends, and were not shown as they are, are sent then.
"""

import atexit
import functools
import io
import os
import sys
import weakref

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase

import _preheat_display

_shown = weakref.WeakSet()
_failed = weakref.WeakSet()


class _Show:
    """What a figure manager's show is.

    It is an attribute that does its work when it is looked up, so that no
    frame of this file is in the traceback of a figure that cannot be drawn.
    """

    def __get__(self, manager, _=None):
        if manager is None:
            return self
        figure = manager.canvas.figure
        if figure in _shown and not figure.stale:
            return dict  # nothing to do, without a frame
        try:
            _send(figure)
        except Exception:
            _failed.add(figure)
            return functools.partial(figure.savefig, io.BytesIO(), format="png", bbox_inches="tight")
        if isinstance(manager, _own_manager()):
            sys.modules["matplotlib.pyplot"].close(figure)
        return dict


def _send(figure):
    _preheat_display.send_figure(figure)
    figure.stale = False  # until the program changes it
    _shown.add(figure)
    _failed.discard(figure)


def _own_manager():
    return globals().get("FigureManager", ())


def show_open(process):
    """Shows the figures that are open and were not shown as they are."""
    if os.getpid() != process:
        return  # a forked child has its parent's figures
    for manager in Gcf.get_all_fig_managers():
        figure = manager.canvas.figure
        if figure in _failed or figure in _shown and not figure.stale:
            continue
        try:
            _send(figure)
        except Exception as e:
            words = " ".join(str(e).split())
            _failed.add(figure)
            _preheat_display.note(f"figure {manager.num} could not be drawn: {type(e).__name__}: {words}")


FigureManagerBase.show = _Show()
atexit.register(show_open, os.getpid())


def __getattr__(name):
    """The backend itself, which only those need who use it."""
    if name not in ("FigureCanvas", "FigureManager"):
        raise AttributeError(name)
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    class FigureCanvas(FigureCanvasAgg):
        """The Agg canvas, with this module's way to show it."""

    class FigureManager(FigureManagerBase):
        """Shows its figure by sending it, once."""

    FigureCanvas.manager_class = FigureManager
    globals().update(FigureCanvas=FigureCanvas, FigureManager=FigureManager)
    return globals()[name]
