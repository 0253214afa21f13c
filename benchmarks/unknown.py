"""How well a classifier tells pictures of other things: energy and neighbours, on the test split.

python benchmarks/unknown.py

It writes `results/unknown.json`: the shipped `cifar10_hybrid` against digits of MNIST, street scenes, photographs.
It needs CIFAR-10 and MNIST in TFDS_DATA_DIR, `camvid` in KERAS_VIT_DATA, and KERAS_VIT_IMAGES, a folder of photographs.
Thresholds are those of 5 % of the validation split; pictures of other things chose nothing. Photographs are of
ImageNet's classes, some of which are CIFAR-10's: those are left out.
"""

import json
import os
import pathlib
import time

import numpy as np
from checkout import about

import keras_vit
from keras_vit.data import pipeline
from keras_vit.models.unknown import ENERGY, RULES
from keras_vit.runs import passage, results, unknown, unknown_rule
from keras_vit.tasks.classify import unknown as rules
from keras_vit.utils.folders import in_folder

RESULTS = pathlib.Path(__file__).parent / "results" / "unknown.json"
NAME, RATE, MOST = "cifar10_hybrid", 0.05, 2000  # pictures of each kind, at most

# ImageNet's birds, frog, dogs and wolves, cat, ships, trucks, cars and airplane: of CIFAR-10's classes.
OWN = {
    *("n01530575", "n01558993", "n01601694", "n01795545", "n01806567", "n01820546", "n01843065", "n01860187"),
    *("n02007558", "n02013706", "n02027492", "n02056570", "n01641577", "n02124075", "n04147183", "n03662601"),
    *("n03345487", "n03796401", "n02965783", "n03445924", "n04552348"),
}
DOGS = ("n02085", "n02117")  # the first and the last of their numbers


def both(trained, source, run):
    """Returns logits and vectors of the images of a source, and their labels."""
    parts = [
        (*run(each["images"]), each["labels"])
        for each in pipeline.evaluation_arrays(source, trained.bound, trained.size)
    ]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def of_pictures(trained, run, pictures):
    """Returns logits and vectors of pictures: files, or arrays `(height, width, channels)`."""
    read = passage.reader(trained)
    if not isinstance(pictures[0], pathlib.Path):
        from keras_vit.data.readers.image_files import preparation

        read = preparation(trained.size, trained.recipe.data)
    parts = [run(np.stack([read(each) for each in pictures[i : i + 64]])) for i in range(0, len(pictures), 64)]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def digits():
    """Returns test digits of MNIST in three channels."""
    import tensorflow_datasets as tfds

    images = tfds.load("mnist", split=f"test[:{MOST}]", as_supervised=True)
    return [np.repeat(np.asarray(image), 3, axis=-1) for image, _ in images.as_numpy_iterator()]


def photographs():
    """Returns photographs without those of animals and vehicles that are CIFAR-10's classes, by WordNet's numbers."""
    paths = map(pathlib.Path, in_folder(pathlib.Path(os.environ["KERAS_VIT_IMAGES"])))
    names = {path: path.parent.name for path in paths}
    return [path for path, name in names.items() if name not in OWN and not DOGS[0] <= name < DOGS[1]][:MOST]


def main():
    trained = keras_vit.load_run(NAME)
    data, run, started = trained.bound.data, unknown.with_vectors(trained.model), time.time()
    train, validation, test = (
        results.source_of(trained, split, None) for split in (data.train, data.validation, data.test)
    )
    kept = unknown_rule.kept_of(train, trained.bound, trained.size, run)
    k = unknown_rule.neighbour(len(kept))
    parts = {"validation": both(trained, validation, run)[:2], "test": both(trained, test, run)[:2]}
    scenes = map(pathlib.Path, in_folder(pathlib.Path(os.environ["KERAS_VIT_DATA"]) / "camvid"))
    scenes = [path for path in scenes if path.parent.name == "images"][:MOST]
    pictures = {"digits of MNIST": digits(), "street scenes": scenes, "photographs": photographs()}
    parts |= {name: of_pictures(trained, run, each) for name, each in pictures.items()}
    rows = {}
    for rule in RULES:
        values = {
            name: rules.energies(logits) if rule == ENERGY else rules.distances(vectors, kept, k)
            for name, (logits, vectors) in parts.items()
        }
        fitted = rules.fitted(values["validation"], RATE)
        rows[rule] = {
            "threshold": fitted["threshold"],
            "false_alarms": float((values["test"] > fitted["threshold"]).mean()),
            **{
                name: {
                    "auroc": rules.area(values["test"], values[name]),
                    "found": float((values[name] > fitted["threshold"]).mean()),
                }
                for name in pictures
            },
        }
    counts = {name: len(each[0]) for name, each in parts.items()}
    stated = {**about("keras", "tensorflow"), "model": NAME, "rate": RATE, "kept": len(kept), "k": k}
    seconds = round(time.time() - started)
    RESULTS.write_text(json.dumps({**stated, "seconds": seconds, "pictures": counts, "rules": rows}, indent=2) + "\n")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
