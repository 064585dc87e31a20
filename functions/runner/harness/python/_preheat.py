"""Holds a Python interpreter back until there is a program for it.

The runner starts ``python3 main.py`` before main.py exists. At the end of the
interpreter's initialisation usercustomize calls enter(), which waits on a
pipe. Afterwards the interpreter goes on by itself: it opens main.py and runs
it as it always does, so that no frame of this file is ever below the program.

Wire format on fd 3, from the runner: four bytes of length (big endian), then
fields that each end in NUL: the number of arguments, the arguments, the
number of environment entries, the entries as NAME=value.
On fd 4, to the runner: one byte "R" when waiting, then rich results
(see _preheat_display).
"""

import _ast as ast
import builtins
import gc
import marshal
import os
import sys
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader

_CONTROL, _RESULTS = 3, 4
_SCRIPT = "main.py"
_ASIDE = ".main.py.source"
_ONLY_AST = 0x0400  # ast.PyCF_ONLY_AST, without importing ast


def enter():
    mode = os.environ.pop("_PREHEAT")
    os.set_inheritable(_RESULTS, False)
    import _preheat_display

    if mode == "warm":
        os.set_inheritable(_CONTROL, False)
        for name in filter(None, os.environ.pop("_PREHEAT_IMPORT", "").split(",")):
            __import__(name)
        # What is there by now stays to the end: the collector need not look
        # at it again, which would take a third of a short program's time.
        gc.collect()
        gc.freeze()
        os.write(_RESULTS, b"R")
        args, env = _receive()
        os.close(_CONTROL)
        os.environ.clear()
        os.environ.update(env)
        sys.argv[1:] = args
        sys.orig_argv[2:] = args
    builtins.display = _preheat_display.display
    try:
        _show_last_expression()
    except Exception:
        # Whatever is odd about the program, the interpreter itself says it
        # best: it finds main.py as it was written.
        _restore()


def _receive():
    size = int.from_bytes(_read(4), "big")
    fields = iter(_read(size).split(b"\0"))
    args = [os.fsdecode(next(fields)) for _ in range(int(next(fields)))]
    pairs = [next(fields).partition(b"=") for _ in range(int(next(fields)))]
    return args, {os.fsdecode(k): os.fsdecode(v) for k, _, v in pairs}


def _read(size):
    data = b""
    while len(data) < size:
        piece = os.read(_CONTROL, size - len(data))
        if not piece:
            os._exit(0)  # the runner is gone
        data += piece
    return data


def _show_last_expression():
    """Lets the value of a final expression statement be displayed.

    The interpreter runs byte code under any name, so main.py is replaced by
    the byte code of the same program with its last expression passed to
    display, and is itself again as soon as that has been loaded. Positions
    are those of the source, and tracebacks show the source.
    """
    with open(_SCRIPT, "rb") as f:
        source = f.read()
    path = os.path.join(os.getcwd(), _SCRIPT)
    try:
        tree = compile(source, path, "exec", _ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return
    if not tree.body or not _has_value(tree.body[-1]):
        return
    last = tree.body[-1]
    here = _position(last)

    def name(identifier, at):
        return ast.Name(identifier, ast.Load(), **at)

    last.value = ast.Call(name("__preheat_display__", here), [last.value], [], **here)
    first = next(i for i, s in enumerate(tree.body) if not _is_prologue(i, s))
    at = dict(_position(tree.body[first]))
    at["end_lineno"], at["end_col_offset"] = at["lineno"], at["col_offset"]
    tree.body.insert(first, ast.Expr(ast.Call(name("__preheat_begin__", at), [], [], **at), **at))

    code = compile(tree, path, "exec", dont_inherit=True)
    # Flags, date and size of the source stay zero: nobody compares them here.
    header = MAGIC_NUMBER + bytes(12)
    import _preheat_display

    builtins.__preheat_begin__ = _begin
    builtins.__preheat_display__ = _preheat_display.display_last
    os.rename(_SCRIPT, _ASIDE)
    with open(_SCRIPT, "wb") as f:
        f.write(header + marshal.dumps(code))


def _has_value(statement):
    """Whether a statement is an expression that may be worth showing."""
    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    if isinstance(value, ast.Constant):
        return not isinstance(value.value, str) and value.value not in (None, ...)
    if isinstance(value, (ast.Await, ast.Yield, ast.YieldFrom)):
        return False
    return not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print")


def _is_prologue(index, statement):
    """Whether a statement must stay first: a docstring or a __future__ import."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return (
        index == 0
        and isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _position(node):
    names = ("lineno", "col_offset", "end_lineno", "end_col_offset")
    return {n: getattr(node, n) for n in names}


def _begin():
    """Runs first in a program that _show_last_expression prepared."""
    del builtins.__preheat_begin__
    _restore()
    module = sys.modules["__main__"]
    module.__loader__ = SourceFileLoader("__main__", module.__file__)


def _restore():
    try:
        os.rename(_ASIDE, _SCRIPT)
    except FileNotFoundError:
        pass
