"""Sends values that a program displays to the runner, in several media types.

A record on fd 4 is four bytes of length (big endian), as much JSON, and the
contents of the parts that it names: {"parts": [{"mime": …, "size": …}, …]}, the
richest first, or {"note": …}. The methods that objects are asked for are
IPython's display protocol
(https://ipython.readthedocs.io/en/stable/config/integrating.html).
"""

import _thread
import os
import stat
import sys
from _json import encode_basestring_ascii as _quote

import _preheat_stdio

_RESULTS = 4
# One record at a time: of this process's threads, and of its children, which
# inherit the pipe.
_sending = _thread.allocate_lock()
os.register_at_fork(after_in_child=_sending._at_fork_reinit)
_PLAIN = "text/plain"
_PLAIN_LIMIT = 64 << 10
_MOST_PARTS = 16
_PLOTLY = "application/vnd.plotly.v1+json"
_METHODS = (
    ("text/html", "_repr_html_"),
    ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("application/json", "_repr_json_"),
    ("text/markdown", "_repr_markdown_"),
    ("text/latex", "_repr_latex_"),
)


def display(*objects, **_):
    """Shows objects in every form that they have, as IPython's display does."""
    for value in objects:
        _show(value)


def display_last(value):
    """Shows the value of a program's last expression, unless it is None."""
    if value is not None:
        _show(value)


def note(text):
    """Adds a note to the result."""
    _send(b'{"note":%s}' % _quote(text).encode())


def end_cell(sequence, exit_code, written):
    """Says that a session's cell has ended; written is empty if it has not.

    So short a record is written whole or not at all, and noting that is the
    same step: a signal's handler that raises comes before or after both.
    """
    import fcntl

    head = b'{"cell":{"sequence":%d,"exit_code":%d}}' % (sequence, exit_code)
    record = len(head).to_bytes(4, "big") + head
    with _sending:
        fcntl.lockf(_RESULTS, fcntl.LOCK_EX)
        try:
            written.extend(map(os.write, (_RESULTS,), (record,)))
        finally:
            fcntl.lockf(_RESULTS, fcntl.LOCK_UN)


def send_figure(figure):
    """Shows a figure of matplotlib."""
    parts = [("image/png", _png(figure))]
    try:
        parts.append((_PLAIN, _text(repr(figure))))
    except Exception:
        pass  # a picture needs no words
    _send_parts(parts)


def _png(figure):
    import io

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", bbox_inches="tight")
    return buffer.getvalue()


def _show(value):
    parts, problems = _parts(value)
    if parts:
        _send_parts(parts)
    for problem in problems:
        note(problem)


def _parts(value):
    """The value's media types, the richest first, and what went wrong."""
    found, problems = {}, []

    def attempt(what, function, *args):
        try:
            return function(*args)
        except Exception as e:
            problems.append(_blame(value, what, e))

    if not isinstance(value, type):
        bundle = attempt("_repr_mimebundle_", _call, value, "_repr_mimebundle_")
        if isinstance(bundle, tuple):
            bundle = bundle[0]
        bundle = bundle if isinstance(bundle, dict) else {}
        # The HTML of a figure of plotly is a script that loads another one.
        plotly = _PLOTLY in bundle
        if plotly:
            found[_PLOTLY] = attempt(_PLOTLY, _bytes, _PLOTLY, bundle[_PLOTLY])
        for mime, method in _METHODS:
            data = bundle.get(mime)
            if data is None and not plotly:
                data = attempt(method, _call, value, method)
            if isinstance(data, tuple):
                data = data[0]
            if data is not None:
                found[mime] = attempt(method, _bytes, mime, data)
        figure = sys.modules.get("matplotlib.figure")
        if figure is not None and isinstance(value, figure.Figure):
            found["image/png"] = attempt("savefig", _png, value)
            _close(value)
        for mime, data in bundle.items():
            if mime not in found and mime != _PLAIN and isinstance(mime, str):
                found[mime] = attempt(mime, _bytes, mime, data)
        if isinstance(bundle.get(_PLAIN), str):
            found[_PLAIN] = _text(bundle[_PLAIN])
    if _PLAIN not in found:
        found[_PLAIN] = attempt("__repr__", lambda: _text(repr(value)))
    parts = [(mime, data) for mime, data in found.items() if data is not None and _is_token(mime)]
    if len(parts) > _MOST_PARTS:
        parts = parts[: _MOST_PARTS - 1] + parts[-1:]
    return parts, problems


def _blame(value, what, error):
    kind = type(error).__name__
    try:
        words = str(error)
    except Exception:
        words = ""
    said = f"{kind}: {words}" if words else kind
    return f"a value of type {type(value).__name__} could not be shown by {what}: {said}"


def _text(text):
    more = len(text) - _PLAIN_LIMIT
    if more > 0:
        text = f"{text[:_PLAIN_LIMIT]}… ({more} more characters)"
    return text.encode("utf-8", "replace")


def _close(figure):
    """Keeps a figure that was displayed from being shown at the end again."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)


def _call(value, method):
    function = getattr(type(value), method, None)
    return None if function is None else function(value)


def _bytes(mime, data):
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    if mime == "application/json" or mime.endswith("+json"):
        return data.encode("utf-8", "replace") if isinstance(data, str) else _json(data)
    if not isinstance(data, str):
        return str(data).encode("utf-8", "replace")
    if mime.startswith("image/") and mime != "image/svg+xml" or mime == "application/pdf":
        import base64

        return base64.b64decode(data)
    return data.encode("utf-8", "replace")


def _json(data):
    """JSON of data. It has no numbers that are none: they become null."""
    import json

    try:
        return json.dumps(data, default=str, allow_nan=False).encode()
    except ValueError:
        return json.dumps(_finite(data), default=str, allow_nan=False).encode()


def _finite(data):
    if isinstance(data, float):
        return data if data - data == 0 else None
    if isinstance(data, dict):
        return {_finite(k) if isinstance(k, float) else k: _finite(v) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(v) for v in data]
    return data


def _is_token(mime):
    return mime.isascii() and 0 < len(mime) <= 100 and all(c.isalnum() or c in "/+-._!#$&^" for c in mime)


def _send_parts(parts):
    names = b",".join(b'{"mime":"%s","size":%d}' % (mime.encode(), len(data)) for mime, data in parts)
    _send(b'{"parts":[%s]}' % names, *(data for _, data in parts))


def _send(head, *contents):
    # What was printed before comes before it.
    _preheat_stdio.settle()
    record = b"".join((len(head).to_bytes(4, "big"), head, *contents))
    try:
        with _sending:
            _write(record)
    except OSError:
        # Nobody collects: the program runs outside Preheat.
        pass


def _write(record):
    import fcntl

    fd = _results()
    fcntl.lockf(fd, fcntl.LOCK_EX)
    try:
        view = memoryview(record)
        while view:
            view = view[os.write(fd, view):]
    finally:
        fcntl.lockf(fd, fcntl.LOCK_UN)


_found = None


def _results():
    """The descriptor of the pipe to the runner.

    A Python that the program started does not have it: it opens the one of
    the process that the runner started, which is an ancestor of it.
    """
    global _found
    if _found is None:
        _found = _RESULTS if in_program else _open_ancestors()
    return _found


# Whether the runner started this process for a program.
in_program = False


def _open_ancestors():
    pid = os.getpid()
    while True:
        with open(f"/proc/{pid}/stat", "rb") as f:
            parent = int(f.read().rpartition(b")")[2].split()[1])
        if parent <= 1:
            break
        pid = parent
    path = f"/proc/{pid}/fd/{_RESULTS}"
    if not stat.S_ISFIFO(os.stat(path).st_mode):
        raise FileNotFoundError(path)  # a file of the program's own
    return os.open(path, os.O_WRONLY | os.O_CLOEXEC)
