"""A matplotlib backend whose show() hands the open figures to the caller.

Figures that are still open when the program ends are shown then.
"""

import atexit
import os

from matplotlib import pyplot
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

import _preheat_display


class FigureCanvas(FigureCanvasAgg):
    """The Agg canvas, with this module's way to show it."""


class FigureManager(FigureManagerBase):
    """Shows its figure by sending it, once."""

    def show(self):
        _show(self)

    @classmethod
    def pyplot_show(cls, *args, **kwargs):
        for manager in Gcf.get_all_fig_managers():
            _show(manager)


FigureCanvas.manager_class = FigureManager


def _show(manager):
    _preheat_display.send_figure(manager.canvas.figure)
    pyplot.close(manager.canvas.figure)


def _show_at_end(process):
    if os.getpid() == process:  # a forked child has its parent's figures
        FigureManager.pyplot_show()


atexit.register(_show_at_end, os.getpid())
