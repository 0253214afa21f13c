"""The page itself."""

import importlib.resources
import os
import pathlib

import numpy as np

from keras_vit import config, counting, explain, files, machine
from keras_vit.plots import canvas
from keras_vit.report import charts
from keras_vit.report.gather import gather

TILE, ACROSS = 224, 4  # pixels of an image in the gallery, and how many stand side by side
MOST_BLOCKS = 12  # that it shows: of more, some between the first and the last


def report(target, to=None, *, arrays=None, most=10_000):
    """Writes all that can be told of a trained model into one HTML file, which opens anywhere, without a network.

    What it is and what it was trained with; curves; its answers on the test split by class, how sure they are, the best
    and the worst; what it looks at, block by block; a map of its embeddings; its layers; its exports.

    Args:
        target: As in `keras_vit.load_run`.
        to: Path that ends in `.html`; `report.html` in the run's directory, or in `exports/NAME`, if `None`.
        arrays: `(images, labels)` to measure on in place of the recipe's test split; needed for a run on arrays, and
            for a `.keras` file outside of a run.
        most: Images to measure on, the first of the split.

    Returns:
        The path.

    Raises:
        ValueError, FileNotFoundError: As `keras_vit.evaluate`, and for another ending, or less than one image.
        OSError: If no file can be written there.
    """
    if to is not None:
        _check_place(pathlib.Path(to))
    facts = gather(target, arrays, most)
    path = pathlib.Path(to or facts.home / "report.html")
    path.parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(path) as temporary:
        temporary.write_text(page(facts), encoding="utf-8")
    return path


def _check_place(path):
    """Raises an error if no report can be written there: it is known before minutes of work."""
    if path.suffix != ".html":
        raise ValueError(f"A report is a file that ends in .html. Received: {str(path)!r}")
    there = next(folder for folder in path.absolute().parents if folder.exists())
    if path.is_dir() or not there.is_dir() or not os.access(there, os.W_OK):
        raise OSError(f"It is not possible to write a file there. Received: {str(path)!r}")


def page(facts):
    """Returns the HTML of what `gather` returned."""
    import jinja2
    from plotly.offline import get_plotlyjs

    folder = importlib.resources.files("keras_vit.report")
    template = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        (folder / "page.html").read_text(encoding="utf-8")
    )
    calibration = explain.calibration(facts.labels, facts.probabilities)
    layers, gallery = counting.by_layer(facts.model), _gallery(facts.model, facts.shown)
    return template.render(
        facts=facts,
        style=(folder / "page.css").read_text(encoding="utf-8"),
        plotly=get_plotlyjs(),
        curves={label: _html(chart) for label, chart in charts.curves(facts.history).items()},
        drawn={name: _html(chart) for name, chart in _charts(facts, calibration, gallery).items()},
        examples={"Worst": _examples(facts, *facts.worst), "Best": _examples(facts, *facts.best)},
        accuracy=float((facts.probabilities.argmax(-1) == facts.labels).mean()),
        calibration=calibration,
        listed=min(charts.LISTED, len(facts.class_names)),
        tall=gallery["images"].shape,
        layers=layers,
        parameters=sum(layer.parameters for layer in layers),
        macs=sum(layer.macs for layer in layers),
        settings=_settings(facts.recipe) if facts.recipe else {},
        here=machine.describe(),
    )


def _charts(facts, calibration, gallery):
    """Returns the charts of the page, by name."""
    labels, probabilities, names, count = facts.labels, facts.probabilities, facts.class_names, len(facts.points)
    drawn = {
        "confusion": charts.confusion(labels, probabilities.argmax(-1), names),
        "per_class": charts.per_class(labels, probabilities, names),
        "calibration": charts.calibration(calibration),
        "gallery": charts.gallery(gallery),
        "distance": charts.distance(explain.attention_distance(facts.model, facts.shown)),
    }
    if count:
        drawn["embedding"] = charts.embedding(facts.points, labels[:count], probabilities[:count], names)
    return drawn


def _gallery(model, images):
    """Returns the pictures of the gallery, by the words of its slider."""
    blocks = explain.attention_from(model, images).mean(2)  # (layers, batch, rows, columns)
    maps = {"images": [None] * len(images)}
    thinned = np.unique(np.linspace(0, len(blocks) - 1, MOST_BLOCKS).round().astype(int))
    maps |= {f"block {i}": blocks[i] for i in thinned}
    maps["rollout"] = explain.attention_rollout(model, images)
    maps["relevance"] = explain.attention_relevance(model, images)
    return {word: _side_by_side(images, heats) for word, heats in maps.items()}


def _side_by_side(images, heats):
    tiles = [np.pad(canvas.painted(*pair, TILE), ((2, 2), (2, 2), (0, 0))) for pair in zip(images, heats)]
    tiles += [np.zeros_like(tiles[0])] * (-len(tiles) % ACROSS if len(tiles) > ACROSS else 0)
    rows = [np.concatenate(tiles[i : i + ACROSS], axis=1) for i in range(0, len(tiles), ACROSS)]
    return np.concatenate(rows)


def _examples(facts, indices, images):
    """Returns images, each with the relevance of its answer laid over it and what is said of it."""
    if not images:
        return []
    found, names = facts.probabilities[indices], facts.class_names
    heats = explain.attention_relevance(facts.model, np.stack(images), found.argmax(-1))
    return [
        {
            "plain": charts.jpeg(canvas.painted(image, None, TILE)),
            "over": charts.jpeg(canvas.painted(image, heat, TILE)),
            "truth": names[facts.labels[index]],
            "answer": names[probabilities.argmax()],
            "sure": float(probabilities.max()),
        }
        for index, image, heat, probabilities in zip(indices, images, heats, found)
    ]


def _settings(recipe):
    """Returns a recipe's settings by part, each as `(name, value)` pairs."""
    parts = config.to_dict(recipe)
    whole = {"": {name: value for name, value in parts.items() if not isinstance(value, dict)}}
    return whole | {name: values for name, values in parts.items() if isinstance(values, dict)}


def _html(figure):
    """Returns a chart as HTML that fills what holds it."""
    settings = {"responsive": True, "displaylogo": False, "displayModeBar": False}
    return figure.to_html(settings, include_plotlyjs=False, full_html=False, default_height="100%")
