"""PSNR with references of several kinds, beside models without references, on the same crops of test images.

python benchmarks/references.py runs/superres_reference superres_x2 [runs/plain ...] --data folder:superres
"""

import argparse

import numpy as np

import keras_vit
from keras_vit.data import sources
from keras_vit.data.readers.whole import whole_arrays
from keras_vit.utils.tiles import tiled


def main(run, others, data, splits, wanted):
    """Prints the mean PSNR of each split and kind of reference."""
    trained, others = keras_vit.load_run(run), {name: keras_vit.load_run(name) for name in others}
    task, recipe = trained.task, keras_vit.config.override(trained.bound, {"data.source": data})
    answer = tiled(trained.answering(), trained.size, beside=task.beside(trained.size))
    for split in splits:
        source = sources.load(recipe.data, split, (), task.extras)
        examples = list(whole_arrays(source, recipe, trained.size))
        unrelated = [one["references"] for one in examples[1:] + examples[:1]]
        kinds = {
            "related": [one["references"] for one in examples],
            "enlarged": [task._enlarged(one["images"][0])[None] for one in examples],
            "unrelated": unrelated,
            "black": [np.zeros_like(one["references"]) for one in examples],
        }
        for kind in wanted:
            references = kinds[kind]
            outputs = [answer({"images": one["images"], "references": r}) for one, r in zip(examples, references)]
            _print(split, f"reference: {kind}", task, examples, outputs)
        for name, other in others.items():
            function = tiled(other.answering(), other.size)
            _print(split, name, task, examples, [function(one["images"]) for one in examples])


def _print(split, name, task, examples, outputs):
    tally = task.tally()
    each = np.concatenate([tally.add(*pair) for pair in zip(examples, outputs)])
    scores = tally.result()
    text = ", ".join(f"{score} {value:.4f}" for score, value in scores.items())
    print(f"{split}, {name}: {text}; each {np.round(each, 2).tolist()}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("run")
    add("others", nargs="*")
    add("--data", default="folder:superres")
    add("--splits", nargs="+", default=["set5", "set14"])
    add("--kinds", nargs="*", default=["related", "enlarged", "unrelated", "black"])
    given = parser.parse_args()
    main(given.run, given.others, given.data, given.splits, given.kinds)
