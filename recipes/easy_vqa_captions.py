"""Captions of drawings: "a red circle", one of 24, learned from 3,542 drawings.

python recipes/easy_vqa_captions.py easy-VQA/data captions
python -m keras_vit fit easy_vqa_captions data.source=folder:captions
python -m keras_vit predict easy_vqa_captions drawing.png

The drawings are from https://github.com/vzhou842/easy-VQA. The first command copies those whose shape and color follow
from their questions and answers, 3,542 to train on and 880 to test, and writes their captions as tables.

All captions of the 880 test drawings are written exactly. It took 7 minutes on two CPU cores that also did other work.
"""

from keras_vit.config import Augment, Caption, Data, Optim, Reached, Recipe, Weights

recipe = Recipe(
    name="easy_vqa_captions",
    task=Caption(length=5, vocabulary=64, every=5, text=dict(width=96, depth=2, num_heads=4, mlp_dim=192)),
    model=dict(variant=None, image_size=64, stem=((24, 2), (48, 2), (96, 2)), patch_size=1, width=96, depth=2,
               num_heads=4, mlp_dim=192),
    data=Data(source="folder:captions", train="train[:95%]", validation="train[95%:]", test="test", batch_size=64),
    augment=Augment(translation=0.1),
    optim=Optim(optimizer="muon", epochs=40, learning_rate=4e-3, weight_decay=0.05),
    weights=Weights(file="easy_vqa_captions.keras",
                    sha256="b3086b0bd4d964f536d9aab6d26685842af234f11e548113e459752ba2077ea8"),
    reached=Reached(scores=(("exact match", 1.0),), minutes=7.0, device="2 CPU cores, x86-64", commit="9d1b1079",
                    note="the cores were shared with other work"),
)  # fmt: skip

COLORS = {"black", "blue", "brown", "gray", "green", "red", "teal", "yellow"}
SHAPES = {"circle", "rectangle", "triangle"}


def captions(questions):
    """Returns the captions of images, by their numbers, from lists of question, answer and number."""
    import collections

    about = collections.defaultdict(set)
    for question, answer, image in questions:
        asked = set(question.rstrip("?").split())
        has = answer not in ("yes", "no") or (answer == "yes") != bool(asked & {"no", "not"})
        about[image] |= ({answer, *asked} if has else set()) & (COLORS | SHAPES)
    pairs = {image: (found & COLORS, found & SHAPES) for image, found in sorted(about.items())}
    return {image: f"a {min(c)} {min(s)}" for image, (c, s) in pairs.items() if len(c) == len(s) == 1}


def main(source, folder, splits=("train", "test")):
    """Copies the drawings that have a caption, and writes a table next to those of each split."""
    import csv
    import json
    import pathlib
    import shutil

    for split in splits:
        read, write = pathlib.Path(source, split), pathlib.Path(folder, split)
        found = captions(json.loads((read / "questions.json").read_text()))
        write.mkdir(parents=True)
        with (write / "metadata.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(("file_name", "caption"))
            for image, caption in found.items():
                shutil.copy(read / "images" / f"{image}.png", write)
                table.writerow((f"{image}.png", caption))
        print(f"{write}: {len(found)} captions")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
