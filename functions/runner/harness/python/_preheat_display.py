"""Sends values that a program displays to the runner, as MIME and bytes.

A record on fd 4 is four bytes of length (big endian), the MIME type, NUL and
the data. The methods that objects are asked for are IPython's display
protocol (https://ipython.readthedocs.io/en/stable/config/integrating.html).
"""

import _thread
import os
import sys

_RESULTS = 4
# One record at a time: of this process's threads, and of its children, which
# inherit the pipe.
_sending = _thread.allocate_lock()
os.register_at_fork(after_in_child=_sending._at_fork_reinit)
_PLAIN_LIMIT = 64 << 10
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
    """Shows objects in their richest form, as IPython's display does."""
    for value in objects:
        _send(*_richest(value))


def display_last(value):
    """Shows the value of a program's last expression, unless it is None."""
    if value is None:
        return
    try:
        _send(*_richest(value))
    except Exception:
        # The program itself is done and was right; that its last value cannot
        # be shown is not its failure.
        pass


def send_figure(figure):
    import io

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", bbox_inches="tight")
    _send("image/png", buffer.getvalue())


def _richest(value):
    if isinstance(value, type):
        return "text/plain", repr(value)
    bundle = _bundle(value)
    for mime, method in _METHODS:
        data = bundle.get(mime)
        if data is None:
            data = _call(value, method)
        if data is not None:
            return mime, data
    figure = sys.modules.get("matplotlib.figure")
    if figure is not None and isinstance(value, figure.Figure):
        import io

        buffer = io.BytesIO()
        value.savefig(buffer, format="png", bbox_inches="tight")
        _close(value)
        return "image/png", buffer.getvalue()
    return "text/plain", bundle.get("text/plain") or _plain(repr(value))


def _plain(text):
    more = len(text) - _PLAIN_LIMIT
    return text if more <= 0 else f"{text[:_PLAIN_LIMIT]}… ({more} more characters)"


def _close(figure):
    """Keeps a figure that was displayed from being shown at the end again."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)


def _bundle(value):
    bundle = _call(value, "_repr_mimebundle_")
    if isinstance(bundle, tuple):
        bundle = bundle[0]
    return bundle if isinstance(bundle, dict) else {}


def _call(value, method):
    function = getattr(type(value), method, None)
    if function is None:
        return None
    data = function(value)
    return data[0] if isinstance(data, tuple) and method != "_repr_mimebundle_" else data


def _send(mime, data):
    if mime == "application/json" and not isinstance(data, (str, bytes)):
        import json

        data = json.dumps(data, default=str)
    if isinstance(data, str):
        if mime.startswith("image/") and mime != "image/svg+xml":
            import base64

            data = base64.b64decode(data)
        else:
            data = data.encode("utf-8", "replace")
    body = mime.encode() + b"\0" + bytes(data)
    try:
        with _sending:
            _write(len(body).to_bytes(4, "big") + body)
    except OSError:
        # Nobody collects: the program runs outside Preheat.
        pass


def _write(record):
    import fcntl

    fcntl.lockf(_RESULTS, fcntl.LOCK_EX)
    try:
        view = memoryview(record)
        while view:
            view = view[os.write(_RESULTS, view):]
    finally:
        fcntl.lockf(_RESULTS, fcntl.LOCK_UN)
