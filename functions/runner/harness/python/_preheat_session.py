"""Runs the cells of a session, one after the other, in one __main__.

The interpreter runs this module's run() in place of main.py. It waits on fd 3
for a cell: four bytes of length (big endian), then fields that each end in
NUL: the cell's number, the path of its standard input (empty: none), the number of
arguments, the arguments, the number of environment entries, the entries as
NAME=value; the rest is the source. When the cell has ended, it writes
{"cell": {"sequence": …, "exit_code": …}} to fd 4, in the form that
_preheat_display describes, behind all that the cell wrote. The end of fd 3 is
the end of the session.
"""

import __future__

import _ast as ast
import _thread
import builtins
import linecache
import os
import select
import signal
import sys
from _contextvars import copy_context
from importlib.machinery import BuiltinImporter, ModuleSpec

import _preheat
import _preheat_display
import _preheat_stdio

_CONTROL = 3
_HARNESS = __file__.removesuffix("session.py")
_ONLY_AST = 0x0400  # ast.PyCF_ONLY_AST
_TOP_LEVEL_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_COROUTINE = 0x80  # inspect.CO_COROUTINE
_FUTURES = {getattr(__future__, name).compiler_flag for name in __future__.all_feature_names}
_INTERRUPTED = 130


def begin(script):
    """Has the interpreter run the session when it would run its script.

    It asks first whether the script is an archive. This answers that it is
    one, whose __main__ calls run().
    """
    os.set_inheritable(_CONTROL, False)
    sys.path_importer_cache[script] = _Script(script)


class _Script:
    """Finds and loads the __main__ of a session, without a file."""

    def __init__(self, path):
        self.path = path

    def find_spec(self, name, _=None):
        return ModuleSpec(name, self) if name == "__main__" else None

    def get_code(self, _):
        del sys.path_importer_cache[self.path]
        return compile("__import__('_preheat_session').run()", "<session>", "exec")


def run():
    """Serves cells until there are none to come."""
    _like_a_console()
    session = _Session()
    while (cell := session.receive()) is not None:
        session.serve(cell)


def _like_a_console():
    """Leaves what a program sees of its interpreter as python3 alone has it."""
    names = sys.modules["__main__"].__dict__
    names.clear()
    names.update(
        __name__="__main__", __doc__=None, __package__=None, __loader__=BuiltinImporter,
        __spec__=None, __annotations__={}, __builtins__=builtins)
    sys.path[0] = ""
    sys.argv[:] = [""]
    del sys.orig_argv[1:]


class _Cell:
    """One message of the runner."""

    def __init__(self, message):
        at = 0

        def field():
            nonlocal at
            end = message.index(0, at)
            value, at = message[at:end], end + 1
            return os.fsdecode(value)

        self.sequence = int(field())
        self.stdin = field()
        self.args = [field() for _ in range(int(field()))]
        pairs = [field().partition("=") for _ in range(int(field()))]
        self.env = {name: value for name, _, value in pairs}
        self.before = {}  # what the environment's entries were
        self.source = message[at:]
        self.name = f"<cell {self.sequence}>"


class _Ended(BaseException):
    """There will be no more cells."""


class _Session:
    def __init__(self):
        self.process = os.getpid()
        self.names = sys.modules["__main__"].__dict__
        # All cells share one context, those that await included.
        self.context = copy_context()
        self.flags = _TOP_LEVEL_AWAIT
        self.loop = None
        self.stdin = sys.stdin
        self.received = []
        # What the program does on SIGINT; between cells it is ignored.
        self.on_interrupt = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, _ignore)

    # Cells come in.

    def receive(self):
        """Waits for a cell; None says that there are no more.

        Handlers of signals that the program has set, and its tasks, run
        meanwhile. What they raise is printed, and the wait goes on.
        """
        while True:
            try:
                self.wait()
                head = self.take(4)
                return _Cell(self.take(4 + int.from_bytes(head, "big"))[4:])
            except _Ended:
                return None
            except BaseException as e:
                self.report(_since_cell(e))
            self.end_child()

    def wait(self):
        loop = self.open_loop()
        if loop is None:
            select.select([_CONTROL], [], [])
            return
        loop.add_reader(_CONTROL, loop.stop)
        try:
            loop.run_forever()
        finally:
            if not loop.is_closed():
                loop.remove_reader(_CONTROL)

    def take(self, size):
        """The first bytes of a message; they stay until the message is whole.

        Reading and keeping is one step for the interpreter: a signal's handler
        that raises in between would lose bytes.
        """
        received = self.received
        while (missing := size - sum(map(len, received))) > 0:
            before = len(received)
            received.extend(map(os.read, (_CONTROL,), (missing,)))
            if len(received) > before and not received[-1]:
                raise _Ended
        return b"".join(received)

    # Cells run.

    def serve(self, cell):
        self.received = []
        code = self.attempt(self.prepare, cell) or self.attempt(self.run, cell)
        code = self.attempt(self.show_figures) or code
        self.end_child(code)
        self.attempt(self.put_back, cell)
        self.attempt(self.settle)
        written = []
        while not written:
            try:
                _preheat_display.end_cell(cell.sequence, code, written)
            except OSError:
                return  # nobody collects
            except BaseException as e:
                self.report(e)  # raised by a signal's handler

    def attempt(self, step, *args):
        """Does a step that can be interrupted; the exit code."""
        error = None
        try:
            try:
                self.resume_interrupts()
                step(*args)
            except BaseException as e:
                error = e
            self.pause_interrupts()
        except BaseException as e:
            # An interrupt that came behind the step itself.
            self.pause_interrupts()
            error = error or e
        return 0 if error is None else self.report(error)

    def prepare(self, cell):
        """Gives the cell its input, arguments and environment."""
        self.open_stdin(cell.stdin)
        sys.argv = [""] + cell.args
        cell.before = {name: os.environ.get(name) for name in cell.env}
        os.environ.update(cell.env)
        # A warning is given once for a line, and each cell has its own lines.
        self.names.pop("__warningregistry__", None)
        # Files that came since do not always change the time of their folder.
        finder = sys.path_importer_cache.get(_folder())
        if hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()

    def put_back(self, cell):
        """Takes the environment of a cell away, but for what it changed itself."""
        for name, value in cell.before.items():
            if os.environ.get(name) != cell.env[name]:
                continue
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        sys.argv = [""]

    def open_stdin(self, path):
        opened = os.open(path or os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        if path:
            os.unlink(path)
        os.dup2(opened, 0)
        if opened != 0:
            os.close(opened)
        # What was read ahead of the last one is gone with its buffers.
        if sys.stdin in (None, self.stdin, sys.__stdin__):
            old = self.stdin
            encoding, errors = (old.encoding, old.errors) if old is not None else ("utf-8", "surrogateescape")
            self.stdin = sys.stdin = sys.__stdin__ = open(0, encoding=encoding, errors=errors, closefd=False)

    def run(self, cell):
        try:
            code = self.compile(cell)
        except BaseException as e:
            # As where the interpreter itself finds it: no frame at all.
            raise e.with_traceback(None)
        if code.co_flags & _COROUTINE:
            self.run_task(code)
        else:
            self.context.run(eval, code, self.names)

    def compile(self, cell):
        keep_source(cell.name, cell.source)
        flags = self.flags
        try:
            tree = compile(cell.source, cell.name, "exec", flags | _ONLY_AST, dont_inherit=True)
        except SyntaxError as e:
            _preheat.note_habit(cell.source, e)
            raise
        _preheat.display_last_of(tree, cell.source)
        builtins.__preheat_display__ = _display_last
        code = compile(tree, cell.name, "exec", flags, dont_inherit=True)
        # What a cell imports from __future__ holds for those after it.
        for feature in _FUTURES:
            self.flags |= code.co_flags & feature
        return code

    def show_figures(self):
        figures = sys.modules.get("_preheat_matplotlib")
        if figures is not None:
            figures.show_open(self.process)

    def settle(self):
        """Writes what the cell has printed."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                pass  # closed, or of the program's own
        _preheat_stdio.settle_cell()

    def end_child(self, code=0):
        """Ends a process that the cell forked where its code ends."""
        if os.getpid() != self.process:
            raise SystemExit(code)

    # Cells that await.

    def open_loop(self):
        """The event loop, once a cell has used it, as the one of this thread."""
        if self.loop is None or self.loop.is_closed():
            self.loop = None
            return None
        sys.modules["asyncio"].set_event_loop(self.loop)
        return self.loop

    def run_task(self, code):
        """Runs a cell that awaits."""
        import asyncio

        loop = self.open_loop()
        if loop is None:
            loop = self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
        task = loop.create_task(self.context.run(eval, code, self.names), context=self.context)
        task.add_done_callback(_stop)
        raised = None
        try:
            loop.run_forever()
        except BaseException as e:
            raised = e
        if not task.done():
            # It waited while something was raised elsewhere, such as an interrupt.
            task.cancel()
            while not task.done():
                loop.run_forever()
        try:
            task.result()
        except asyncio.CancelledError as e:
            error = e
            if isinstance(raised, KeyboardInterrupt):
                error = KeyboardInterrupt().with_traceback(e.__traceback__)
        except BaseException as e:
            error = e
        else:
            error = raised
        if error is not None:
            raise _since_cell(error)

    # Errors and interrupts.

    def report(self, error):
        """Prints what a cell has not caught as the interpreter does; the exit code."""
        if isinstance(error, SystemExit):
            return _exit_code(error)
        _clean(error)
        sys.last_exc = sys.last_value = error
        sys.last_type, sys.last_traceback = type(error), error.__traceback__
        try:
            _print(error)
        except BaseException:
            pass  # interrupted, or nowhere to print it
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1

    def resume_interrupts(self):
        if self.on_interrupt is not None:
            signal.signal(signal.SIGINT, self.on_interrupt)

    def pause_interrupts(self):
        """Ignores interrupts without having processes inherit that."""
        while True:
            try:
                self.on_interrupt = signal.signal(signal.SIGINT, _ignore)
                return
            except BaseException:
                pass  # one that came just now


def _ignore(*_):
    pass


def _stop(task):
    task.get_loop().stop()


def _folder():
    try:
        return os.getcwd()
    except OSError:
        return None


def _display_last(value):
    if value is not None:
        builtins._ = value
        _preheat_display.display_last(value)


def keep_source(name, source):
    """Lets tracebacks and inspect show the lines of a cell."""
    text = source.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = [line + "\n" for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    linecache.cache[name] = len(source), None, lines, name


def _exit_code(error):
    """The exit code of exit(…), as the interpreter makes it."""
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    try:
        print(code, file=sys.stderr)
    except BaseException:
        pass
    return 1


def _print(error):
    """Prints an error by the program's hook."""
    kind, traceback = type(error), error.__traceback__
    try:
        sys.excepthook(kind, error, traceback)
    except Exception as e:
        _clean(e)
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(e), e, e.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(kind, error, traceback)


def _clean(error):
    """Takes the frames of this harness out of an error's tracebacks."""
    seen, errors = set(), [error]
    while errors:
        e = errors.pop()
        if e is None or id(e) in seen:
            continue
        seen.add(id(e))
        e.__traceback__ = _without_harness(e.__traceback__)
        errors += e.__cause__, e.__context__
        if isinstance(e, BaseExceptionGroup):
            errors += e.exceptions


def _since_cell(error):
    """Leaves out of an error's traceback what is below the program's own frames."""
    traceback = error.__traceback__
    while traceback is not None and not traceback.tb_frame.f_code.co_filename.startswith("<cell "):
        traceback = traceback.tb_next
    return error if traceback is None else error.with_traceback(traceback)


def _without_harness(traceback):
    frames = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_HARNESS):
            frames.append(traceback)
        traceback = traceback.tb_next
    for before, after in zip(frames, frames[1:] + [None]):
        before.tb_next = after
    return frames[0] if frames else None
