"""Standard output and error as on a terminal, at the price of a pipe.

Whole lines are written at once, each in one write, so that they neither wait
nor mix with those of other threads. A program that prints thousands of lines
in a row gets the buffer that pipes have: then a thread writes it every few
milliseconds, until the program prints less.
"""

import _io
import _thread
import atexit
import os
import sys
import time

# So short a time for flood_lines (seconds) makes them a flood.
_FLOOD_TIME = 0.004
# What is written of a flood at once, in bytes. Where the threads of a program
# take turns between two such pieces, lines can mix, as they do in any pipe.
_FLOOD_CHUNK = 64 << 10
# How often a flood is written (seconds), and what is none any more (bytes).
_TICK = 0.01
_TRICKLE = 8 << 10


class _Buffer(_io.BufferedWriter):
    """A buffer that is written at the end of each line."""

    flood_lines = 64
    flooding = False
    lines = total = 0
    since = 0.0
    other = None  # the other stream's buffer

    def prepare(self, text):
        self.text = text
        # What each thread has written of a line, and since when.
        self.parts = {}
        return self

    # The defaults are for the end of the interpreter, when globals are gone.
    def write(self, data, write=_io.BufferedWriter.write, flush=_io.BufferedWriter.flush,
              now=time.monotonic, thread=_thread.get_ident, bytes=bytes, type=type, len=len):
        other = self.other
        if other.parts or other.flooding:
            other.settle()
        parts, me = self.parts, thread()
        if self.flooding:
            waited = parts.pop(me)[0] if me in parts else b""
            done = write(self, waited + data if waited else data)
            self.total += done
            return done - len(waited)
        # An empty write is the end of print(..., end="").
        if type(data) is bytes and data and 10 not in data and 13 not in data:
            part, since = parts.get(me, (b"", None))
            if since is None:
                since = now()
            # What waits is short, and does not wait for long once it grows.
            if len(part) < 4096 and now() - since < 0.25:
                parts[me] = part + data, since
                return len(data)
        # At once, lest another thread writes in between.
        waited = parts.pop(me)[0] if me in parts else b""
        try:
            done = write(self, waited + data if waited else data)
            flush(self)
        except OSError:
            self.hide()
            raise
        self.lines += 1
        if not self.lines % self.flood_lines:
            self.count(now())
        return done - len(waited)

    def flush(self, write=_io.BufferedWriter.write, flush=_io.BufferedWriter.flush, thread=_thread.get_ident):
        part = self.parts.pop(thread(), None)
        if part is not None:
            write(self, part[0])
        flush(self)

    def settle(self):
        """Writes what this thread has written, in favour of what comes after it."""
        try:
            if self.flooding:
                self.text.flush()
            else:
                self.flush()
        except (OSError, ValueError):
            # Closed or broken: whoever writes next is told.
            self.parts.clear()

    def settle_all(self, write=_io.BufferedWriter.write):
        """Writes what all threads have written."""
        while self.parts and not self.closed:
            write(self, self.parts.popitem()[1][0])
        self.settle()

    def hide(self):
        """Leaves this file out of what is said of a pipe that is broken."""
        self.flush = dict  # what was refused is not tried again at the end
        show = sys.excepthook

        def hook(kind, error, traceback):
            link = error
            name = "__traceback__"
            while (at := getattr(link, name)) is not None:
                if at.tb_frame.f_code.co_filename == __file__:
                    setattr(link, name, at.tb_next)
                else:
                    link, name = at, "tb_next"
            show(kind, error, error.__traceback__)

        sys.excepthook = hook

    def count(self, now):
        quick = now - self.since < _FLOOD_TIME
        self.since = now
        if quick:
            _floods.begin(self)


class _Floods:
    """The buffers that are flooded, and the thread that writes them."""

    def __init__(self):
        self.buffers = []
        self.thread = self.stop = None
        self.hooked = False

    def begin(self, buffer):
        if not self.hooked:
            self.hooked = True
            atexit.register(self.end)
            self.plain_write = os.write
        if not self.buffers:
            os.write = self.write
        buffer.flooding, buffer.total = True, 0
        buffer.text.reconfigure(write_through=False)
        buffer.text._CHUNK_SIZE = _FLOOD_CHUNK
        self.buffers.append(buffer)
        if self.thread is None:
            self.stop = _thread.allocate_lock()
            self.stop.acquire()
            self.thread = _thread.start_joinable_thread(self.tick, daemon=True)

    def tick(self):
        stop = self.stop
        while not stop.acquire(timeout=_TICK):
            for buffer in list(self.buffers):
                buffer.text.flush()
                if buffer.total < _TRICKLE:
                    self.calm(buffer)
                buffer.total = 0
            if not self.buffers:
                self.thread = None
                return

    def calm(self, buffer):
        buffer.text.reconfigure(write_through=True)
        buffer.text._CHUNK_SIZE = 8192
        buffer.flooding = False
        buffer.lines, buffer.since = 0, 0.0
        if buffer in self.buffers:
            self.buffers.remove(buffer)
        if not self.buffers:
            os.write = self.plain_write
        _io.BufferedWriter.flush(buffer)

    def end(self):
        """Writes everything and ends the thread."""
        thread, self.thread = self.thread, None
        if thread is not None and thread.ident != _thread.get_ident():
            self.stop.release()
            thread.join()
        for buffer in list(self.buffers):
            self.calm(buffer)

    def write(self, fd, data, /):
        if fd in (1, 2):
            settle()
        return self.plain_write(fd, data)


_floods = _Floods()
_buffers = []


def settle():
    """Writes what this thread has written."""
    for buffer in _buffers:
        if buffer.parts or buffer.flooding:
            buffer.settle()


def _before_others():
    """Writes everything before other processes write, or end this one."""
    _floods.end()
    for buffer in _buffers:
        buffer.settle_all()


def settle_cell():
    """Writes what this thread and those that have ended have written.

    The others go on, and their lines become whole later.
    """
    _floods.end()
    alive = sys._current_frames()
    for buffer in _buffers:
        for thread in [thread for thread in list(buffer.parts) if thread not in alive]:
            part = buffer.parts.pop(thread, None)
            if part is not None and not buffer.closed:
                _io.BufferedWriter.write(buffer, part[0])
        buffer.settle()


def _audit(event, _, events=frozenset((
        "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.forkpty",
        "os.kill", "os.killpg", "signal.pthread_kill")), write=_before_others):
    if event in events:
        write()


def _last(end):
    """A way to end the process that writes everything first."""

    def last(*args, **named):
        _before_others()
        end(*args, **named)

    last.__name__ = last.__qualname__ = end.__name__
    last.__module__, last.__doc__ = end.__module__, end.__doc__
    return last


def replace():
    """Gives sys.stdout and sys.stderr these buffers."""
    if None in (sys.stdout, sys.stderr) or sys.stdout.write_through:
        return  # closed, or unbuffered by the program's environment
    _buffers.extend(map(_replace, ("stdout", "stderr")))
    out, err = _buffers
    out.other, err.other = err, out
    os.register_at_fork(before=_before_others)
    sys.addaudithook(_audit)
    os._exit = _last(os._exit)
    os.abort = _last(os.abort)
    atexit.register(_before_others)


def _replace(name):
    old = getattr(sys, name)
    encoding, errors = old.encoding, old.errors
    buffer = _Buffer(old.detach().detach())
    text = _io.TextIOWrapper(buffer, encoding, errors, "\n", write_through=True)
    text.mode = "w"
    setattr(sys, name, text)
    setattr(sys, f"__{name}__", text)
    return buffer.prepare(text)
