"""Sets fonts up while the image is built.

In matplotlib, a glyph that a family does not have is taken from the next one
in font.family, so that each such list that programs start from, and styles
set, gets fonts for the scripts of the world. Names of fonts that programs ask for, and that nobody
may pass on, lead to free ones.
"""

import os
import pathlib
import py_compile
import re
import shutil

SEABORN = pathlib.Path("/usr/lib/python3/dist-packages/seaborn/rcmod.py")
STYLES = pathlib.Path("/usr/share/matplotlib/mpl-data/stylelib")
CACHE = pathlib.Path("/usr/share/preheat/home/.cache/matplotlib")
LIBERATION = pathlib.Path("/usr/share/fonts/truetype/liberation")

# In this order: Indic scripts, Chinese, Japanese and Korean, what is rarer, signs and emoji.
FALLBACK = ["FreeSans", "WenQuanYi Micro Hei", "FreeSerif", "Lohit Telugu", "Symbola"]

CHINESE = """SimHei|SimSun|Microsoft YaHei|Microsoft JhengHei|PingFang SC|PingFang TC|Heiti SC|Heiti TC|STHeiti|STSong
Arial Unicode MS|Source Han Sans|Source Han Sans SC|Source Han Sans CN|Noto Sans CJK SC|Noto Sans CJK TC|Noto Sans CJK JP
Noto Sans CJK KR|Noto Sans SC|Noto Sans TC|Noto Sans JP|Noto Sans KR|WenQuanYi Zen Hei|Droid Sans Fallback|Hiragino Sans
Hiragino Sans GB|IPAexGothic|IPAGothic|TakaoGothic|Yu Gothic|MS Gothic|Meiryo|Malgun Gothic|NanumGothic|AppleGothic|Songti SC"""
ALIASES = {
    "WenQuanYi Micro Hei": re.split(r"[|\n]", CHINESE),
    "Liberation Sans": ["Arial", "Helvetica", "Helvetica Neue"],
    "Liberation Serif": ["Times New Roman", "Times"],
    "Liberation Mono": ["Courier New", "Courier", "Consolas", "Menlo", "Monaco"],
    "DejaVu Sans": ["Verdana", "Tahoma", "Segoe UI", "Calibri", "Open Sans"],
    "DejaVu Serif": ["Georgia", "Cambria"],
    "FreeSans": ["Noto Sans Devanagari", "Mangal", "Nirmala UI"],
    "Symbola": ["Noto Color Emoji", "Noto Emoji", "Segoe UI Emoji", "Apple Color Emoji"],
}
# Files that programs open by name, most of all with Pillow.
FILES = {
    "arial.ttf": "Sans-Regular", "Arial.ttf": "Sans-Regular", "arialbd.ttf": "Sans-Bold", "ariali.ttf": "Sans-Italic",
    "times.ttf": "Serif-Regular", "timesbd.ttf": "Serif-Bold", "cour.ttf": "Mono-Regular", "courbd.ttf": "Mono-Bold",
    "Helvetica.ttf": "Sans-Regular",
}


def add_fallback():
    rc = pathlib.Path("/etc/matplotlibrc")
    rc.write_text(f"{rc.read_text()}\nfont.family: {', '.join(['sans-serif', *FALLBACK])}\n")
    changed = 0
    for style in STYLES.glob("*.mplstyle"):
        text, n = re.subn(r"(?m)^(font\.family\s*:\s*[\w-]+)\s*$", rf"\1, {', '.join(FALLBACK)}", style.read_text())
        style.write_text(text)
        changed += n
    quoted = "".join(f', "{name}"' for name in FALLBACK)
    text, n = re.subn(r'("font\.family": |font=)\[?"sans-serif"\]?', rf'\1["sans-serif"{quoted}]', SEABORN.read_text())
    SEABORN.write_text(text)
    py_compile.compile(str(SEABORN), doraise=True)
    if not changed or n != 2:
        raise SystemExit(f"the fallback is in {changed} styles of matplotlib and {n} of seaborn")


def add_files():
    folder = pathlib.Path("/usr/share/fonts/truetype/alias")
    folder.mkdir()
    for alias, name in FILES.items():
        folder.joinpath(alias).symlink_to(LIBERATION / f"Liberation{name}.ttf")


def fill_cache():
    shutil.rmtree(CACHE)
    os.environ.update(MPLCONFIGDIR=str(CACHE), MPLBACKEND="agg")
    import dataclasses

    import matplotlib.pyplot  # and so the cache
    from matplotlib import font_manager

    fonts = font_manager.fontManager
    known = {entry.name for entry in fonts.ttflist}
    missing = {*FALLBACK, *ALIASES} - known
    if missing:
        raise SystemExit(f"no such fonts: {sorted(missing)}")
    for entry in list(fonts.ttflist):
        for alias in ALIASES.get(entry.name, ()):
            if alias not in known:
                fonts.ttflist.append(dataclasses.replace(entry, name=alias))
    (cache,) = CACHE.glob("fontlist-*.json")
    font_manager.json_dump(fonts, cache)


add_fallback()
add_files()
fill_cache()
