"""The part of IPython that programs use outside of it: IPython.display.

There is no shell, and get_ipython() says so as it does in a plain Python.
"""

version_info = (8, 35, 0)
__version__ = "8.35.0"


def get_ipython():
    return None
