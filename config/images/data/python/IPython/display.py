"""IPython.display without IPython: what is displayed becomes a result.

See https://ipython.readthedocs.io/en/stable/api/generated/IPython.display.html.
"""

import json
import mimetypes
import os

from _preheat_display import display as _display

__all__ = [
    "Code", "DisplayHandle", "DisplayObject", "GeoJSON", "HTML", "IFrame", "Image", "JSON", "Javascript", "Latex",
    "Markdown", "Math", "Pretty", "SVG", "TextDisplayObject", "clear_output", "display", "display_html", "display_jpeg",
    "display_json", "display_latex", "display_markdown", "display_png", "display_pretty", "display_svg",
    "publish_display_data", "set_matplotlib_formats", "update_display",
]


class _Bundle:
    def __init__(self, data):
        self._data = data

    def _repr_mimebundle_(self):
        return self._data


class DisplayHandle:
    """Shows again what it is updated to: results that were sent stay."""

    def __init__(self, display_id=None):
        self.display_id = display_id if isinstance(display_id, str) else os.urandom(8).hex()

    def display(self, obj, **kwargs):
        display(obj, **kwargs)

    update = display


def display(*objs, raw=False, display_id=None, **_):
    _display(*(_Bundle(obj) if raw else obj for obj in objs))
    return DisplayHandle(display_id) if display_id else None


def update_display(obj, *, display_id, **kwargs):
    display(obj, **kwargs)


def publish_display_data(data, metadata=None, **_):
    _display(_Bundle(data))


def clear_output(wait=False):
    """Does nothing: what was printed and displayed has been sent."""


def set_matplotlib_formats(*_, **__):
    """Does nothing: figures are sent as PNG."""


class DisplayObject:
    """Data, or the file that has it; there is no network to get it from."""

    _read_flags = "r"

    def __init__(self, data=None, url=None, filename=None, metadata=None):
        if data is not None and isinstance(data, (str, os.PathLike)) and url is None and filename is None:
            path = os.fspath(data)
            if path.startswith(("http://", "https://")):
                url, data = path, None
            elif isinstance(data, os.PathLike):
                filename, data = path, None
        self.data, self.url, self.filename, self.metadata = data, url, filename, metadata or {}
        self.reload()

    def reload(self):
        if self.filename is not None:
            encoding = None if "b" in self._read_flags else "utf-8"
            with open(self.filename, self._read_flags, encoding=encoding) as f:
                self.data = f.read()
        elif self.url is not None:
            raise OSError(f"{self.url} cannot be loaded: a sandbox has no network")


class TextDisplayObject(DisplayObject):
    def __str__(self):
        return str(self.data)


class Pretty(TextDisplayObject):
    def __repr__(self):
        return str(self.data)


class HTML(TextDisplayObject):
    def _repr_html_(self):
        return self.data

    __html__ = _repr_html_


class Markdown(TextDisplayObject):
    def _repr_markdown_(self):
        return self.data


class Latex(TextDisplayObject):
    def _repr_latex_(self):
        return self.data


class Math(TextDisplayObject):
    def _repr_latex_(self):
        return "$\\displaystyle " + self.data.strip("$") + "$"


class SVG(DisplayObject):
    def _repr_svg_(self):
        return self.data


class JSON(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, expanded=False, metadata=None, root="root", **_):
        super().__init__(data, url, filename, metadata)
        if isinstance(self.data, (str, bytes)):
            self.data = json.loads(self.data)

    def _repr_json_(self):
        return self.data


class GeoJSON(JSON):
    def _repr_mimebundle_(self):
        return {"application/geo+json": self.data}


class Javascript(TextDisplayObject):
    """Scripts are shown: nothing runs them."""

    def _repr_mimebundle_(self):
        return {"application/javascript": self.data}


class Code(TextDisplayObject):
    def __init__(self, data=None, url=None, filename=None, language=None):
        super().__init__(data, url, filename)
        self.language = language

    def __repr__(self):
        return str(self.data)


class Image(DisplayObject):
    _read_flags = "rb"

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None, **_):
        if isinstance(data, str) and not data.startswith(("http://", "https://")):
            data, filename = None, data
        super().__init__(data, url, filename)
        self.width, self.height = width, height
        if isinstance(self.data, bytes) and self.data[:3] == b"\xff\xd8\xff":
            self.format = "jpeg"
        elif isinstance(self.data, bytes) and self.data[:4] == b"GIF8":
            self.format = "gif"
        elif format is not None:
            self.format = format.lower()
        elif self.filename is not None:
            kind, _ = mimetypes.guess_type(self.filename)
            self.format = (kind or "image/png").removeprefix("image/")
        else:
            self.format = "png"
        self.format = "jpeg" if self.format == "jpg" else self.format

    def _repr_mimebundle_(self):
        return {f"image/{self.format}": self.data}


class IFrame:
    def __init__(self, src, width, height, extras=None, **_):
        self.src, self.width, self.height = src, width, height

    def __repr__(self):
        return f"IFrame: {self.src}"


def _display_as(mime):
    def show(*objs, raw=False, **_):
        display(*({mime: obj} if raw else obj for obj in objs), raw=raw)

    return show


display_html, display_json = _display_as("text/html"), _display_as("application/json")
display_jpeg, display_png = _display_as("image/jpeg"), _display_as("image/png")
display_latex, display_markdown = _display_as("text/latex"), _display_as("text/markdown")
display_pretty, display_svg = _display_as("text/plain"), _display_as("image/svg+xml")
