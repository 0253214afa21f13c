"""A small classifier of colors, and pictures of none of them."""

import contextlib
import io

import numpy as np

import keras_vit
from tests.commands.helpers import run as command

COLORS = np.array([[250, 20, 20], [20, 250, 20], [20, 20, 250]])


def picture(color, rng):
    return np.clip(rng.normal(size=(8, 8, 3)) * 30 + color, 0, 255).astype("uint8")


def write(folder, name, color, count, rng):
    from PIL import Image

    (folder / name).mkdir(parents=True)
    for i in range(count):
        Image.fromarray(picture(color, rng)).save(folder / name / f"{i}.png")


def make(folder):
    """Trains a run in a folder that tells three colors apart; `strange` in it has black noise."""
    rng = np.random.default_rng(1)
    for name, color in zip(("red", "green", "blue"), COLORS):
        write(folder / "data", name, color, 60, rng)
    write(folder, "strange", (0, 0, 0), 30, rng)
    recipe = keras_vit.config.Recipe(
        name="colors",
        task=keras_vit.Classify(),
        model={"variant": "mu/4", "image_size": 8, "depth": 1},
        data=keras_vit.config.Data(source=f"folder:{folder / 'data'}", train="all[:50%]", validation="all[50%:80%]",
                                   test="all[80%:]", batch_size=30),
        augment=keras_vit.config.Augment(),
        optim=keras_vit.config.Optim(epochs=15, learning_rate=3e-3, warmup_epochs=0.0),
    )  # fmt: skip
    keras_vit.fit(recipe, folder / "run", verbose=False)
    return folder


def said(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        command(*map(str, words))
    return out.getvalue()
