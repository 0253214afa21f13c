"""Clips with texts for tests: each is of one color, which its text names."""

import csv

import numpy as np

from keras_vit.config import Data, Optim, Recipe
from tests.clipfiles import animated

COLORS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220), "white": (230, 230, 230)}
FRAMES = 4
MODEL = dict(variant="mu/4", image_size=8, depth=1)


def clips(folder, count=24):
    """Writes clips of five frames and a table of their texts; returns the paths of the clips."""
    folder.mkdir(parents=True)
    files = [folder / f"{i}.gif" for i in range(count)]
    with (folder / "metadata.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("file_name", "caption"))
        for i, path in enumerate(files):
            name = [*COLORS][i % len(COLORS)]
            noise = np.random.default_rng(i).integers(-20, 20, (5, 8, 8, 3))
            animated(path, np.uint8(np.clip(np.array(COLORS[name]) + noise, 0, 255)))
            table.writerow((path.name, f"a {name} clip"))
    return files


def recipe(folder, task, **model):
    """Returns a recipe of a task on such clips; `model` are more arguments of the model."""
    return Recipe(
        name="spoken",
        task=task,
        model={**MODEL, **model},
        data=Data(source=f"folder:{folder}", train="all[:67%]", validation="all[67%:]", test="all[67%:]", batch_size=4),
        optim=Optim(epochs=2, warmup_epochs=0.0, learning_rate=3e-3, weight_decay=0.0),
    )
