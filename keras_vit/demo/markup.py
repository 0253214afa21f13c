"""What the page says of an image, as HTML: a heading, bars, a ranking, the colors of a picture, and notes."""

import base64
import html
import io

from keras_vit.tasks.shown import percent

MOST_COLORS = 30  # in a legend
BAR = "height:0.5rem;border-radius:3px;background:var(--border-color-primary)"
FILLED = "height:100%;border-radius:3px;background:var(--color-accent)"


def answer(heading="", bars=None, rows=(), notes=()):
    """Returns an answer.

    Args:
        heading: What the output says, a few words.
        bars: Dictionary from names to probabilities, from 0 to 1.
        rows: Pairs of texts, one below the other.
        notes: Sentences below.
    """
    parts = [f'<h2 class="answer" style="margin:0 0 0.5rem">{_text(heading)}</h2>'] if heading else []
    for name, share in (bars or {}).items():
        parts.append(
            f'<div class="bar" style="margin:0.4rem 0"><div style="{BAR}">'
            f'<div style="{FILLED};width:{share:.1%}"></div></div>{_row(name, percent(share))}</div>'
        )
    parts += [f'<div class="row">{_row(name, value)}</div>' for name, value in rows]
    parts += [f'<p class="note" style="margin:0.4rem 0">{_text(note)}</p>' for note in notes]
    return f'<section aria-label="Prediction" aria-live="polite">{"".join(parts)}</section>' if parts else ""


def legend(colors):
    """Returns the colors in a picture: a dictionary from names to `(red, green, blue)`, 0..255."""
    chip = "display:inline-block;width:0.8rem;height:0.8rem;border-radius:2px;margin:0 0.3rem 0 0"
    entries = [
        f'<span style="margin-right:1rem;white-space:nowrap"><span style="{chip};background:rgb{tuple(color)}"></span>'
        f"{_text(name)}</span>"
        for name, color in [*colors.items()][:MOST_COLORS]
    ]
    more = len(colors) - len(entries)
    return f'<div class="legend">{" ".join(entries)}{f" and {more} more" if more > 0 else ""}</div>' if entries else ""


def refusal(error):
    """Returns an error as an alert; `""` of an empty one."""
    return f'<p role="alert">{_text(error)}</p>' if error else ""


def file_line(name):
    """Returns the line that names a file."""
    return f'<p class="file" style="margin:0">Shown: {_text(name)}</p>' if name else ""


def animation(clip, maps):
    """Returns a clip that plays, next to itself under its heat maps, as an image inside of the page.

    Args:
        clip: Array, `(frames, height, width, channels)`, 0..255.
        maps: Array, `(steps, rows, columns)`.
    """
    from keras_vit.plots.clip_figures import write_animation

    written = io.BytesIO()
    write_animation(written, clip[None], maps[None])
    data = base64.b64encode(written.getvalue()).decode()
    alt = "The clip, and next to it the clip under a heat map"
    return f'<img alt="{alt}" style="max-width:100%" src="data:image/gif;base64,{data}">'


def _row(name, value):
    side = "display:flex;justify-content:space-between;gap:1rem"
    left = f'<span style="overflow-wrap:anywhere">{_text(name)}</span>'
    return f'<div style="{side}">{left}<span>{_text(value)}</span></div>'


def _text(value):
    return html.escape(str(value))
