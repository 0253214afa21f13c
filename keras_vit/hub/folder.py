"""Writes the folder that is published: a run's directory without its training, and a card."""

import contextlib
import json
import shutil

from keras_vit import config
from keras_vit.checkpoints.files.repository import PUBLISHED, sha256
from keras_vit.hub import private
from keras_vit.hub.card import CURVES, card
from keras_vit.models.outputs import write_labels
from keras_vit.models.unknown import ENERGY
from keras_vit.runs import unknown
from keras_vit.training import history, rundir
from keras_vit.traits import Traits
from keras_vit.utils import files
from keras_vit.utils.keras_private import sublayers
from keras_vit.utils.warned import warn

CARD = "README.md"


def write(content, folder, repository, license=None):
    """Writes what is published of a trained model; paths are left out.

    Args:
        content: A `Content`.
        folder: An empty folder.
        repository: `"owner/name"`.
        license: As in `card`.

    Raises:
        ValueError: If a file names this machine, or paths on it.
    """
    recipe, mark, paths = None, None, set()
    if content.recipe:
        values = json.loads(json.dumps(config.to_dict(content.recipe)))
        recipe, paths = config.from_dict(private.without_paths(values)), private.left_out(values)
        _check_autoencoder(content.recipe.task)
        data = content.data or {"arrays": False}
        mark = rundir.mark(recipe, data)
        write_json(folder / rundir.RECIPE, config.to_dict(recipe))
        write_json(folder / rundir.DATA, data)
    if content.names or content.recipe:
        write_labels(folder / rundir.LABELS, content.names)
    with _published(content.model, mark, _without(content)):
        unknown.save(content.model, content.vectors, folder / rundir.MODEL)
    for path in content.exports:
        _check_links(path)
        (shutil.copytree if path.is_dir() else shutil.copy2)(path, folder / path.name)
    if content.history:
        from keras_vit import plots

        plots.plot_history(history.read(content.history)).savefig(folder / CURVES, format="png")
        shutil.copy2(content.history / rundir.HISTORY, folder)
    others = sorted(path.name for path in folder.iterdir())
    (folder / CARD).write_text(card(content, repository, license, others), encoding="utf-8")
    written = sorted(path for path in folder.rglob("*") if path.is_file())
    write_json(folder / PUBLISHED, {"files": {str(path.relative_to(folder)): sha256(path) for path in written}})
    private.check(folder, repository, paths)


def _check_autoencoder(task):
    """Raises ValueError for a model of latents whose decoder a reader would not find."""
    address = str(getattr(task, "autoencoder", None) or "")
    if address and "://" not in address and not (files.folder("saved_models") / f"{address}.keras").is_file():
        raise ValueError(
            "Who reads a model of latents needs its autoencoder: publish that first, and train with its hf:// address. "
            f"Received: task.autoencoder={address!r}"
        )


def _without(content):
    """Returns which metadata are not published: a rule by vectors of a model in memory, which has no file of them."""
    rule = Traits(content.model).unknown
    if rule is None or rule["rule"] == ENERGY or content.vectors is not None:
        return ()
    warn(
        f"{content.model.name!r} is published without its rule for unknown images, whose vectors are not in memory: "
        "write it with the `save` of what `calibrate` returned, and publish that file."
    )
    return ("unknown",)


def _check_links(path):
    """Raises ValueError for a link: what it names may be no part of a run."""
    if link := next((str(each) for each in (path, *path.rglob("*")) if each.is_symlink()), None):
        raise ValueError(f"Exported files must not be links. Received: {link!r}")


@contextlib.contextmanager
def _published(model, mark, without=()):
    """A block in which a model's metadata have no paths and no entries `without`, and the mark of what is published."""
    layers = [layer for layer in (model, *sublayers(model)) if isinstance(getattr(layer, "metadata", None), dict)]
    before = [layer.metadata for layer in layers]
    try:
        for layer, metadata in zip(layers, before):
            kept = {name: value for name, value in metadata.items() if name not in without}
            layer.metadata = private.without_paths(kept) | ({"run": mark} if mark and "run" in metadata else {})
        yield
    finally:
        for layer, metadata in zip(layers, before):
            layer.metadata = metadata


def write_json(path, values):
    """Writes values as JSON."""
    path.write_text(json.dumps(values, indent=2), encoding="utf-8")
