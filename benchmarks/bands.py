"""Pictures of five bands of 16 bits: what the bands beyond the third are worth, and what published weights are.

    python benchmarks/bands.py [--part 1]

Part 1: 2,400 made TIFFs of 32 x 32 pixels. Bands 1 to 3 are pictures of CIFAR-10, bands 4 and 5 noise. A class, one of
four, is whether a faint square is in band 4, in band 5, in both or in none. The same model sees all bands, or three.

Part 2: CIFAR-10 as five bands: red, green, blue, their mean and their largest. 2,000 pictures train a hybrid, from its
weights for three channels, whose first convolution is repeated, or from random ones.

Needs CIFAR-10 of tensorflow-datasets and the extra `tiff`. Takes about ten minutes on two cores.
"""

import argparse
import json
import pathlib
import shutil
import tempfile

import numpy as np
from checkout import about

import keras_vit
from keras_vit import explain
from keras_vit.config import Augment, Data, Optim, Recipe

COUNT, SIDE, SQUARE = 2400, 32, 10
SMALL = dict(width=64, depth=3, num_heads=4, mlp_dim=128, patch_size=4, image_size=SIDE, mean="data", std="data")


def pictures(split):
    """Returns pictures of CIFAR-10 and their labels."""
    import tensorflow_datasets as tfds

    data = tfds.as_numpy(tfds.load("cifar10", split=split, batch_size=-1, download=False))
    return data["image"], data["label"]


def write(folder, seed=0):
    """Writes the made set of part 1."""
    import tifffile

    random, (images, _) = np.random.default_rng(seed), pictures(f"train[:{COUNT}]")
    for i, image in enumerate(images):
        label = int(random.integers(4))
        bands = random.normal(8000, 1500, (5, SIDE, SIDE))
        bands[:3] = image.transpose(2, 0, 1) * 180.0 + 500
        top, left = random.integers(0, SIDE - SQUARE, 2)
        for k in range(2):
            if label >> k & 1:
                bands[3 + k, top : top + SQUARE, left : left + SQUARE] += 1500
        place = folder / f"class{label}"
        place.mkdir(parents=True, exist_ok=True)
        values = bands.clip(0, 65535).round().astype("uint16")
        tifffile.imwrite(
            place / f"{i}.tif", values, photometric="minisblack", planarconfig="separate", compression="deflate"
        )


def made(folder, bands, seed, epochs):
    """Returns the test accuracy of a model that sees some of the bands."""
    recipe = Recipe(
        "bands",
        {**SMALL, "channels": len(bands)},
        data=Data(source=f"folder:{folder}", batch_size=64, value_range="percentiles", bands=bands),
        augment=Augment(flip=True),
        optim=Optim(epochs=epochs, learning_rate=1e-3),
        seed=seed,
    )
    return trained(recipe)


def trained(recipe, **data):
    """Returns the test accuracy of a recipe's run."""
    place = tempfile.mkdtemp()
    try:
        keras_vit.fit(recipe, place, verbose=0, **data)
        (scores,) = keras_vit.evaluate(place, **({"arrays": data["validation"]} if data else {})).values()
    finally:
        shutil.rmtree(place)
    return round(float(scores["accuracy"]), 4)


def five(images):
    """Returns pictures as five bands of 16 bits: red, green, blue, their mean and their largest."""
    wide = images.astype("float32") * 257
    more = [wide.mean(-1, keepdims=True), wide.max(-1, keepdims=True)]
    return np.concatenate([wide, *more], -1).round().astype("uint16")


def transferred(weights, epochs, seed):
    """Returns the accuracy on 2,000 pictures of CIFAR-10's test split as five bands."""
    model = {**keras_vit.load_recipe("cifar10_hybrid").model, "channels": 5}
    if weights:
        model |= {"weights": weights, "head": "new"}
    train, test = (pictures(split) for split in ("train[:2000]", "test[:2000]"))
    recipe = Recipe(
        "five",
        {**model, "num_classes": 10},
        data=Data(batch_size=50, value_range=(0, 65535)),
        augment=Augment(flip=True),
        optim=Optim(epochs=epochs, learning_rate=3e-4, warmup_epochs=0.5),
        seed=seed,
    )
    pairs = [(five(images), labels) for images, labels in (train, test)]
    return trained(recipe, train=pairs[0], validation=pairs[1])


def cosine():
    """Returns the mean cosine of features of gray pictures, in three equal bands and in five."""
    gray = pictures("test[:500]")[0].astype("float32").mean(-1, keepdims=True)
    features = []
    for channels in (3, 5):
        model = keras_vit.from_pretrained("cifar10_hybrid", channels=channels)
        found = np.asarray(explain.embed(model, np.repeat(gray, channels, -1)))
        features.append(found / np.linalg.norm(found, axis=-1, keepdims=True))
    return round(float((features[0] * features[1]).sum(-1).mean()), 4)


def weights(seeds, few):
    """Returns the figures of part 2."""
    found = {"cosine of features of gray pictures, five bands and three": cosine()}
    for name, start in {"repeated": "cifar10_hybrid", "random": None}.items():
        found[f"accuracy after {few} epochs, {name} weights"] = [transferred(start, few, seed) for seed in range(seeds)]
    return found


def bands_alone(seeds, epochs):
    """Returns the figures of part 1."""
    found, chosen = {}, {"all five bands": (1, 2, 3, 4, 5), "bands 1 to 3": (1, 2, 3), "bands 4 and 5": (4, 5)}
    with tempfile.TemporaryDirectory() as place:
        write(pathlib.Path(place))
        for name, bands in chosen.items():
            found[name] = [made(place, bands, seed, epochs) for seed in range(seeds)]
            print(name, found[name], flush=True)
    return found


def main(part=0, seeds=1, epochs=15, few=3):
    path = pathlib.Path(__file__).parent / "results" / "bands.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for number, name, measure in (
        (1, "made", lambda: {"pictures": COUNT, "epochs": epochs, "test accuracy": bands_alone(seeds, epochs)}),
        (2, "first convolution", lambda: weights(seeds, few)),
    ):
        if part in (0, number):
            results[name] = {**measure(), **about("tensorflow", "keras", "tifffile", "imagecodecs")}
            print(json.dumps(results[name], indent=1), flush=True)
            path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"part": 0, "seeds": 1, "epochs": 15, "few": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    main(**vars(parser.parse_args()))
