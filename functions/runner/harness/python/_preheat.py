"""Holds a Python interpreter back until there is a program for it.

The runner starts ``python3 main.py`` before main.py exists. At the end of the
interpreter's initialisation usercustomize calls enter(), which waits on a
pipe. Afterwards the interpreter goes on by itself: it opens main.py and runs
it as it always does, so that no frame of this file is ever below the program.

Wire format on fd 3, from the runner: four bytes of length (big endian), then
fields that each end in NUL: the number of arguments, the arguments, the
number of environment entries, the entries as NAME=value.
On fd 4, to the runner: one byte "R" when waiting, then rich results and notes
(see _preheat_display).
"""

import _ast as ast
import _warnings
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
    session = os.environ.pop("_PREHEAT_SESSION", None)
    os.set_inheritable(_RESULTS, False)
    import _preheat_display
    import _preheat_stdio

    _preheat_display.in_program = True
    _preheat_stdio.replace()
    if mode == "warm":
        os.set_inheritable(_CONTROL, False)
        for name in filter(None, os.environ.pop("_PREHEAT_IMPORT", "").split(",")):
            __import__(name)
        if "matplotlib.backend_bases" in sys.modules:
            import _preheat_matplotlib
        # What is there by now stays to the end: the collector need not look
        # at it again, which would take a third of a short program's time.
        gc.collect()
        gc.freeze()
        _renew_main()
        # The interpreter asks whether its script is an archive, which it is
        # not: this is what it remembers of the answer.
        sys.path_importer_cache[os.path.join(os.getcwd(), _SCRIPT)] = None
        os.write(_RESULTS, b"R")
        args, env = _receive()
        session = env.pop("_PREHEAT_SESSION", None)
        if session is None:
            os.close(_CONTROL)
        os.environ.clear()
        os.environ.update(env)
        sys.argv[1:] = args
        sys.orig_argv[2:] = args
    builtins.display = _preheat_display.display
    if session is not None:
        import _preheat_session

        _preheat_session.begin(os.path.join(os.getcwd(), _SCRIPT))
        return
    try:
        _show_last_expression()
    except Exception:
        # Whatever is odd about the program, the interpreter itself says it
        # best: it finds main.py as it was written.
        _restore()


def _renew_main():
    """Makes a __main__ that the collector looks at.

    At the interpreter's end a module is collected before others are torn
    down, and what its globals hold can still print. A frozen one is not.
    """
    old = sys.modules["__main__"]
    new = type(old)("__main__")
    new.__dict__.clear()
    new.__dict__.update(old.__dict__)
    sys.modules["__main__"] = new


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
    code = None
    for action in ("error", "ignore"):
        # What the compiler warns of must be said once, by whoever compiles
        # last, so that a program with warnings is tried without first.
        with _warnings_filtered(action):
            try:
                code = _compile(source, path)
                break
            except SyntaxError as e:
                note_habit(source, e)
                return
            except Warning:
                pass
    if code is None:
        if b"await" in source or b"async" in source:
            _try(source, path)
        return
    if action == "ignore":
        code = _compile(source, path)
    # Flags, date and size of the source stay zero: nobody compares them here.
    header = MAGIC_NUMBER + bytes(12)
    import _preheat_display

    builtins.__preheat_display__ = _preheat_display.display_last
    os.rename(_SCRIPT, _ASIDE)
    with open(_SCRIPT, "wb") as f:
        f.write(header + marshal.dumps(code))
    _on_start(path, _begin)


def _try(source, path):
    """Compiles a program for the sake of a note on what is wrong with it."""
    with _warnings_filtered("ignore"):
        try:
            compile(source, path, "exec", dont_inherit=True)
        except SyntaxError as e:
            note_habit(source, e)


def _compile(source, path):
    """Compiles a program so that its last value is displayed, if it has one."""
    tree = compile(source, path, "exec", _ONLY_AST, dont_inherit=True)
    if not display_last_of(tree, source):
        return None
    return compile(tree, path, "exec", dont_inherit=True)


def display_last_of(tree, source):
    """Passes the last value of a program to display; False if it has none."""
    if not tree.body or not _has_value(tree.body[-1]) or _is_silenced(source, tree.body[-1]):
        return False
    last = tree.body[-1]
    at = _position(last)
    function = ast.Name("__preheat_display__", ast.Load(), **at)
    last.value = ast.Call(function, [last.value], [], **at)
    return True


class _warnings_filtered:
    """Puts one filter before all others, without importing warnings."""

    def __init__(self, action):
        self._filter = (action, None, Warning, None, 0)

    def __enter__(self):
        _warnings.filters.insert(0, self._filter)
        _warnings._filters_mutated()

    def __exit__(self, *_):
        _warnings.filters.remove(self._filter)
        _warnings._filters_mutated()


def _has_value(statement):
    """Whether a statement is an expression that may be worth showing."""
    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    if isinstance(value, ast.Constant):
        return value.value not in (None, ...)
    if isinstance(value, (ast.Yield, ast.YieldFrom)):
        return False
    return not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print")


def _is_silenced(source, statement):
    """Whether a semicolon follows the program's last statement, as in notebooks."""
    lines = source.splitlines()
    if statement.end_lineno > len(lines):
        return False
    rest = lines[statement.end_lineno - 1]
    if statement.end_lineno == 1:
        rest = rest.removeprefix(b"\xef\xbb\xbf")
    return rest[statement.end_col_offset :].lstrip().startswith(b";")


def note_habit(source, error):
    """Says in a note what of a notebook is not Python."""
    lines = source.splitlines()
    at = error.lineno or 0
    line = lines[at - 1].strip().decode("utf-8", "replace") if 0 < at <= len(lines) else ""
    what = None
    if line.startswith("!"):
        what = "is a shell command of notebooks; programs run as plain Python, and nothing can be installed"
    elif line.startswith("%"):
        what = "is a command of notebooks; programs run as plain Python, where figures come back without it"
    elif line.startswith("?") or line.endswith("?"):
        what = "asks a notebook for help; programs run as plain Python"
    elif "outside function" in error.msg and ("await" in error.msg or "async" in error.msg):
        what = "awaits outside of a function, as only notebooks can; asyncio.run(main()) does it in a program"
    if what is not None:
        import _preheat_display

        shown = line if len(line) <= 60 else line[:60] + "…"
        _preheat_display.note(f"line {at}, {shown!r}, {what}")


def _position(node):
    names = ("lineno", "col_offset", "end_lineno", "end_col_offset")
    return {n: getattr(node, n) for n in names}


def _on_start(path, call):
    """Has call called when the interpreter begins to run the module at path."""
    monitoring = sys.monitoring
    tool = monitoring.OPTIMIZER_ID
    starts = monitoring.events.PY_START

    def started(code, _):
        if code.co_filename == path:
            monitoring.set_events(tool, 0)
            monitoring.register_callback(tool, starts, None)
            monitoring.free_tool_id(tool)
            call()

    monitoring.use_tool_id(tool, "preheat")
    monitoring.register_callback(tool, starts, started)
    monitoring.set_events(tool, starts)


def _begin():
    """Puts everything in its place once the program has been loaded."""
    _restore()
    module = sys.modules["__main__"]
    module.__loader__ = SourceFileLoader("__main__", module.__file__)


def _restore():
    try:
        os.rename(_ASIDE, _SCRIPT)
    except FileNotFoundError:
        pass
