"""Texts of figures: how wide they are, broken into lines, as headings, titles and legends."""

import contextlib
import functools
import re
import warnings

from keras_vit.utils.warned import warn

LETTERS = 24  # of a class's name in a figure of many, at most
MISSING = "Glyph .* missing"
FONTS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "Noto Sans JP", "Noto Sans SC", "Noto Sans KR",
    "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "IPAexGothic", "IPAGothic", "TakaoGothic",
    "Droid Sans Fallback", "Arial Unicode MS", "Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Yu Gothic",
    "Meiryo", "MS Gothic", "Microsoft YaHei", "SimHei", "Malgun Gothic", "Noto Sans Devanagari", "Nirmala UI",
    "Noto Sans Thai", "Noto Sans Bengali", "Noto Sans Tamil", "Noto Emoji", "Symbola", "FreeSans", "Unifont",
)  # fmt: skip
HEADING, TITLE = 10, 8  # points
LINE = 1.25 / 72  # inches of a line's height, for each point of the font
HANDLE = 0.5  # inches of a legend's line or patch, with the space around it
MOST = 60  # entries of a legend


def width(text, size=TITLE):
    """Returns the inches of a text's longest line, `size` in points."""
    return max(map(functools.partial(_width, size=size), str(text).split("\n")), default=0)


@functools.lru_cache(4096)
def _width(line, size):
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=families(), size=size)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", MISSING)
        return text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] / 72


@functools.cache
def families():
    """Returns matplotlib's font, and after it those installed that have letters which it lacks."""
    import matplotlib
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [matplotlib.rcParamsDefault["font.sans-serif"][0], *(name for name in FONTS if name in installed)]


@contextlib.contextmanager
def in_all_scripts(told=True):
    """Lets matplotlib draw texts with the installed fonts of all scripts; warns once of letters that none has."""
    import matplotlib

    family = [*matplotlib.rcParams["font.family"], *families()[1:]]
    fonts = matplotlib.rc_context({"font.sans-serif": families(), "font.family": family})
    with fonts, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
    lacking = [one for one in seen if re.match(MISSING, str(one.message))]
    for one in seen:
        if one not in lacking:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    letters = dict.fromkeys(chr(int(re.findall(r"\d+", str(one.message))[0])) for one in lacking)
    if letters and told:
        _warn(letters)


def add_fallbacks(figure):
    """Lets the texts of a figure use, after their own font, the installed ones of other scripts.

    matplotlib looks for letters in all families of a text, but takes one font alone of a generic one, "sans-serif".
    """
    from matplotlib.text import Text

    others = families()[1:]
    for text in figure.findobj(Text) if others else ():
        own = [name for name in text.get_fontfamily() if name not in others]
        text.set_fontfamily([*own, *others])


def _warn(letters):
    warn(
        f"No installed font has {', '.join(map(repr, letters))[:80]}: boxes are drawn. Install one of that script, "
        f"such as {FONTS[0]} (the package fonts-noto-cjk on Debian and Ubuntu), and start Python again."
    )


def for_pillow(text, size):
    """Returns the font with which Pillow draws a text, `size` in pixels: an installed one if its own lacks letters."""
    from PIL import ImageFont

    if text.isascii():
        return ImageFont.load_default(size)
    from matplotlib import font_manager

    lacking = set(text)
    for family in families():
        path = font_manager.findfont(family)
        lacking = {letter for letter in text if ord(letter) not in font_manager.get_font(path).get_charmap()}
        if not lacking:
            return ImageFont.truetype(path, size)
    _warn(dict.fromkeys(letter for letter in text if letter in lacking))
    return ImageFont.load_default(size)


def fitted(text, inches, size=TITLE, most=2):
    """Returns a text in lines that are no wider than `inches`, at most `most`; what is longer ends in "…"."""
    lines, rest = [], printable(text).replace("\n", " ").strip()
    while rest and len(lines) < most:
        line, rest = _first_line(rest, inches, size)
        lines.append(line)
    if rest and lines:
        lines[-1] = _cut(f"{lines[-1]} {rest}", inches, size)
    return words("\n".join(lines))


def _first_line(text, inches, size):
    if _width(text, size) <= inches:
        return text, ""
    parts, end = text.split(" "), 0
    while end < len(parts) and _width(" ".join(parts[: end + 1]), size) <= inches:
        end += 1
    if end:
        return " ".join(parts[:end]), " ".join(parts[end:])
    letters = _letters(text, inches, size)
    return text[:letters], text[letters:]


def _cut(text, inches, size):
    return text[: max(_letters(text, inches - _width("…", size), size), 0)].rstrip() + "…"


def _letters(text, inches, size):
    """Returns how many letters of a text fit, at least one."""
    few, many = 1, len(text)
    while few < many:
        middle = (few + many + 1) // 2
        few, many = (middle, many) if _width(text[:middle], size) <= inches else (few, middle - 1)
    return few


def heading(figure, text):
    """Writes the heading of a figure, in lines of its width, and gives it the height of more than one."""
    lines = fitted(text, figure.get_figwidth() - 0.2, HEADING, 4)
    figure.set_figheight(figure.get_figheight() + height(lines.count("\n"), HEADING))
    figure.suptitle(lines, fontsize=HEADING)


def height(lines, size=TITLE):
    """Returns the height of lines in inches."""
    return lines * size * LINE


def short(text, most=LETTERS):
    """Returns a text that an axis has room for: printable, and cut to `most` characters."""
    text = printable(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def legend(figure, handles, labels, below=True):
    """Draws a legend under a figure, or right of it, which grows by what it needs; of many entries the first 60."""
    labels, handles = [words(short(label)) for label in labels], list(handles)
    if len(labels) > MOST:
        labels, handles = [*labels[:MOST], f"and {len(labels) - MOST} more"], [*handles[:MOST], _nothing()]
    widest = max(map(width, labels), default=0) + HANDLE
    wide, tall = figure.get_size_inches()
    if below:
        columns = max(min(int((wide - 0.2) / widest), len(labels)), 1)
        figure.set_size_inches(max(wide, widest + 0.2), tall + height(1.3 * -(-len(labels) // columns) + 1))
    else:
        rows = max(int((tall - 0.3) / height(1.3)), 1)
        columns = -(-len(labels) // rows)
        figure.set_size_inches(wide + columns * widest, tall)
    place = "outside lower center" if below else "outside right upper"
    return figure.legend(handles, labels, loc=place, ncols=columns, frameon=False, fontsize=TITLE, columnspacing=1)


def _nothing():
    from matplotlib.patches import Patch

    return Patch(alpha=0)


def words(text):
    """Returns a text that matplotlib draws as it is: it reads `$...$` as a formula."""
    return re.sub(r"(?<!\\)\$", r"\$", printable(text))


def printable(text):
    """Returns a text with "\N{REPLACEMENT CHARACTER}" for characters that no picture, SVG or HTML can contain."""
    return re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", str(text))
