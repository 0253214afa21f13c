"""The HTML page of a report."""

import importlib.resources
import os
import pathlib
import re

import keras
import numpy as np

from keras_vit import config, explain, plots
from keras_vit.explain.reading import read_by_head
from keras_vit.explain.relevance import has_classes
from keras_vit.models import anatomy, counting
from keras_vit.plots import canvas, lettering
from keras_vit.preparing.pixel_range import range_of
from keras_vit.reporting import inline as embed
from keras_vit.reporting.gather import gather
from keras_vit.utils import checks, extras, files, machine, metrics

FIRST = 5  # scores at the top of the page; further scores are in a table
TILE, ACROSS = 224, 4  # pixels of an image in the gallery, and images per row; half as many clips
WIDE, MOST_SIDE = 1.5, 900  # aspect ratio above which a picture takes two tiles; its longest side
MOST_BLOCKS = 12  # largest number of blocks in the gallery, evenly spaced


def report(
    target: str | os.PathLike | keras.Model,
    to: str | os.PathLike | None = None,
    *,
    arrays: tuple[np.ndarray, np.ndarray] | None = None,
    most: int = 10_000,
) -> pathlib.Path:
    """Writes a report of a trained model: one HTML file that needs no network.

    It shows the model and the machine that trained it, training curves, the task's scores and figures on the test
    split, the best and worst predictions, attention by block, a map of embeddings, the layers and the exported files.

    Args:
        target: As in `keras_vit.load_run`.
        to: Path that ends in `.html`; `None` for `report.html` in the run's directory, or in `exports/NAME`.
        arrays: `(images, labels)` to score instead of the recipe's test split: images `(n, height, width, channels)`,
            and labels, `(n, ...)`, as in `keras_vit.evaluate`. A run on arrays, a model, and a `.keras` file outside a
            run need them.
        most: Largest number of images to score, the first of the split.

    Returns:
        The path of the report.

    Raises:
        ValueError, FileNotFoundError: As in `keras_vit.evaluate`; for `most` below 1, or a path that does not end in
            `.html`.
        OSError: If the path is not writable.
    """
    extras.need("A report", "report", "jinja2")
    to = None if to is None else checks.path("to", to)
    if to is not None:
        _check_writable(to)
    facts = gather(target, arrays, most)
    path = to or facts.home / "report.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(path) as temporary:
        temporary.write_text(render(facts), encoding="utf-8")
    return path


def _check_writable(path):
    """Raises an error, before any computation, if no report can be written to a path."""
    if path.suffix != ".html":
        raise ValueError(f"`to` must end in .html. Received: to={str(path)!r}")
    existing = next(folder for folder in path.absolute().parents if folder.exists())
    if path.is_dir() or not existing.is_dir() or not os.access(existing, os.W_OK):
        raise OSError(f"`to` must be a file that can be written. Received: to={str(path)!r}")


def render(facts):
    """Returns the HTML of a report from `Facts`."""
    import jinja2

    folder = importlib.resources.files("keras_vit.reporting")
    template = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        (folder / "page.html").read_text(encoding="utf-8")
    )
    layers, maps = counting.by_layer(facts.model), _gallery(facts.seen, facts.shown, facts.seen is facts.model)
    return template.render(
        facts=facts,
        style=(folder / "page.css").read_text(encoding="utf-8"),
        figures=_figures(facts),
        scores={text: embed.svg(figure, f"score_{i}") for i, (text, figure) in enumerate(facts.figures.items())},
        gallery={text: embed.jpeg(picture) for text, picture in maps.items()},
        rest=len(facts.numbers) > FIRST,
        overlaid=any(one.support is not None for ones in facts.examples.values() for one in ones),
        drawn=_drawn(facts.seen, maps) if maps else "",
        examples={heading: _examples(ones) for heading, ones in facts.examples.items()},
        hinted=", and what was predicted" if any(_captions(facts)) else "",
        parted=lambda kind: re.findall("[A-Z]+[a-z0-9]*|.[^A-Z]*", kind),
        parts=next((one.parts for ones in facts.examples.values() for one in ones if one.parts), ()),
        layers=layers,
        parameters=sum(layer.parameters for layer in layers),
        macs=sum(layer.macs for layer in layers),
        settings=_settings(facts.recipe) if facts.recipe else {},
        here=machine.describe(),
        written=metrics.written,
    )


def _figures(facts):
    """Returns the figures that all tasks share as SVG, by name."""
    figures = {}
    if facts.seen and facts.shown.ndim == 4:  # pixels of images
        figures["distance"] = plots.plot_distance(explain.attention_distance(facts.seen, facts.shown))
    if facts.history:
        figures["history"] = plots.plot_history(facts.history)
        figures["history"].set_size_inches(6, figures["history"].get_figheight())  # its text must fit a phone
    drawn = {name: embed.svg(figure, name) for name, figure in figures.items()}
    if len(facts.points):
        names = [lettering.short(name) for name in facts.class_names] or None
        figure = plots.plot_embedding(facts.points, facts.labels, names)
        drawn["embedding"] = embed.svg(figure, "embedding", facts.hints)
    return drawn


def _gallery(model, images, whole):
    """Returns the images of the gallery's slider, uint8 `(rows, columns, 3)`, by label; `{}` without a model.

    Args:
        model: Model with attention to images, or `None`.
        images: Array, `(n, height, width, channels)`, or clips.
        whole: Whether it is the trained model itself, not a tower of it. A tower has no classes, and so no relevance.
    """
    if model is None:
        return {}
    maps = {"images": [None] * len(images)}
    if len(anatomy.stages(model)) == 1:  # else blocks attend to the patches of one time step, or to no patches
        blocks = explain.attention_from(model, images).mean(2)  # (layers, batch, rows, columns)
        thinned = np.unique(np.linspace(0, len(blocks) - 1, MOST_BLOCKS).round().astype(int))
        maps |= {f"block {i}": blocks[i] for i in thinned}
    maps["rollout"] = explain.attention_rollout(model, images)
    if whole and has_classes(model):
        maps["relevance"] = explain.attention_relevance(model, images)
    pictures = canvas.as_bytes(images, range_of(model))
    return {text: _side_by_side(pictures, heats) for text, heats in maps.items()}


def _drawn(model, gallery):
    """Returns a description of the maps in a gallery."""
    drawn = ["rollout through all blocks (Abnar and Zuidema 2020)"]
    if any(name.startswith("block ") for name in gallery):
        drawn.insert(0, f"attention of {read_by_head(model)}, in each block (mean over heads)")
    if "relevance" in gallery:
        drawn.append("relevance for the prediction")
    return "; ".join(drawn)


def _side_by_side(images, heats):
    """Returns images in full rows, such as four of five images, with heat maps, uint8 `(rows, columns, 3)`."""
    across = ACROSS // 2 if images.ndim == 5 else ACROSS
    some = list(zip(images, heats))[: max(len(images) // across * across, min(len(images), across))]
    tiles = [canvas.painted(*pair, TILE) for pair in some]
    rows = [canvas.side_by_side(tiles[i : i + across]) for i in range(0, len(tiles), across)]
    return canvas.side_by_side(rows, axis=0)


def _captions(facts):
    """Returns the captions in the hints of the map of embeddings, without image numbers."""
    return [text.partition(": ")[2] for texts in facts.hints.values() for text in texts]


def _examples(examples):
    """Returns examples as dictionaries: picture, relevance map, caption, and whether the picture is wide."""
    return [
        {
            "plain": embed.jpeg(canvas.painted(one.picture, None, _side(one.picture))),
            "over": None if one.support is None else embed.jpeg(canvas.painted(one.image, one.support, TILE)),
            "caption": one.caption,
            "wide": one.picture.shape[1] > WIDE * one.picture.shape[0],
        }
        for one in examples
    ]


def _side(picture):
    """Returns the longer side of a picture in the page, in pixels; larger for wide or tall pictures."""
    long, short = max(picture.shape[:2]), min(picture.shape[:2])
    return min(round(TILE * long / short), MOST_SIDE)


def _settings(recipe):
    """Returns a recipe's settings by part, as dictionaries."""
    parts = config.to_dict(recipe)
    whole = {"": {name: value for name, value in parts.items() if not isinstance(value, dict)}}
    return whole | {name: values for name, values in parts.items() if isinstance(values, dict)}
