"""The pixels that a sentence means: "the red circle" among two to four shapes, in 3,000 scenes of 64 x 64 pixels.

python recipes/easy_vqa_masks.py easy-VQA/data shapes
python -m keras_vit fit easy_vqa_masks data.source=folder:shapes
python -m keras_vit predict runs/easy_vqa_masks scene.png --text "the red circle" --to masks

The drawings are from https://github.com/vzhou842/easy-VQA, and have one shape each. The first command cuts shapes out
of several drawings and puts them on the background of one, where none covers another. Often two have one color, or one
form, so that both words matter. It writes two sentences for each scene, and their masks.

Four of the 24 pairs of a color and a form are in no scene of the splits `train`, `validation` and `test`. The sentences
of the split `new` say these: `evaluate runs/easy_vqa_masks data.test=new`.
"""

from keras_vit.config import Augment, Data, Optim, Recipe, Segment

recipe = Recipe(
    name="easy_vqa_masks",
    task=Segment(text=True, length=8, vocabulary=64, head={"kind": "film", "width": 48, "num_heads": 4, "mlp_dim": 96},
                 tower=dict(width=48, depth=1, num_heads=4, mlp_dim=96), example="the red circle"),
    model=dict(variant=None, image_size=64, stem=((24, 2), (48, 2)), patch_size=1, width=64, depth=2, num_heads=4,
               mlp_dim=128),
    data=Data(source="folder:shapes", train="train", validation="validation", test="test", batch_size=64),
    augment=Augment(translation=0.1),
    optim=Optim(epochs=15, learning_rate=2e-3, weight_decay=0.05, warmup_epochs=1.0,
                xla=False),  # faster on a CPU, by the convolutions of the stem
)  # fmt: skip

COLORS = {"black": (0, 0, 0), "blue": (0, 0, 255), "brown": (165, 42, 42), "gray": (128, 128, 128),
          "green": (0, 255, 0), "red": (255, 0, 0), "teal": (0, 128, 128), "yellow": (255, 255, 0)}  # fmt: skip
NEW = {("red", "circle"), ("blue", "triangle"), ("yellow", "rectangle"), ("gray", "circle")}
SPLITS = {"train": ("train", 3_000), "validation": ("train", 250), "test": ("test", 250), "new": ("test", 250)}


def ground_of(image):
    """Returns the color of a drawing's background, that of most corners."""
    import numpy as np

    corners, counts = np.unique(image[[0, 0, -1, -1], [0, -1, 0, -1]], axis=0, return_counts=True)
    return corners[counts.argmax()]


def shape_in(image):
    """Returns the color and the form of the shape in a drawing, its pixels `(rows, columns, 3)` and its mask."""
    import numpy as np

    mask = (image != ground_of(image)).any(-1)
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    pixels, mask = image[box], mask[box]
    inks, counts = np.unique(pixels[mask], axis=0, return_counts=True)  # edges are mixed with the background
    color = min(COLORS, key=lambda name: np.abs(inks[counts.argmax()] - np.array(COLORS[name])).sum())
    form = "circle" if not mask[-1].all() else "rectangle" if mask[0].mean() > 0.5 else "triangle"
    return color, form, pixels, mask


def scene(draw, drawings, new):
    """Returns a scene of two to four drawings, uint8 `(64, 64, 3)`, and the mask of each shape by color and form.

    Args:
        draw: A `random.Random`.
        drawings: Drawings, uint8 `(64, 64, 3)`, in a list for each color and form.
        new: Whether one pair is among `NEW`; else none is.
    """
    import numpy as np

    known = [pair for pair in drawings if pair not in NEW]
    pairs = [draw.choice(sorted(NEW)) if new else draw.choice(known)]
    for _ in range(draw.randint(1, 3)):
        near = [pair for pair in known if len({*pair} & {*pairs[0]}) == 1 and pair not in pairs]
        far = [pair for pair in known if pair not in pairs]
        pairs.append(draw.choice(near if draw.random() < 0.5 else far))
    image, masks, taken = None, {}, np.zeros((64, 64), bool)
    for pair in pairs:
        drawing = draw.choice(drawings[pair])
        image = np.full_like(drawing, ground_of(drawing)) if image is None else image
        *_, pixels, mask = shape_in(drawing)
        for _ in range(50):
            top, left = (draw.randint(0, 64 - side) for side in mask.shape)
            box = np.s_[top : top + mask.shape[0], left : left + mask.shape[1]]
            if not taken[box].any():
                image[box][mask], taken[box] = pixels[mask], True
                masks[pair] = np.zeros((64, 64), "uint8")
                masks[pair][box] = mask
                break
    return (image, masks) if len(masks) > 1 else scene(draw, drawings, new)  # the second found no place


def sentences(draw, masks, new):
    """Returns two sentences, or as many as there are shapes, and their masks: pairs of a text and an array."""
    pairs = [pair for pair in masks if not new or pair in NEW]
    said = []
    for color, form in draw.sample(pairs, min(2, len(pairs))):
        texts = [f"the {color} {form}"]
        if not new:  # one word, where it is enough
            texts += [f"the {color} shape"] * (sum(color in pair for pair in masks) == 1)
            texts += [f"the {form}"] * (sum(form in pair for pair in masks) == 1)
        said.append((draw.choice(texts), masks[color, form]))
    return said


def main(source, folder, splits=SPLITS):
    """Writes the scenes of some splits, their masks and their sentences: the same ones for the same drawings."""
    import collections
    import csv
    import pathlib
    import random

    import numpy as np
    from PIL import Image

    for split, (part, count) in splits.items():
        drawings, path = collections.defaultdict(list), pathlib.Path(folder, split)
        for file in sorted(pathlib.Path(source, part, "images").glob("*.png")):
            drawing = np.asarray(Image.open(file).convert("RGB"))
            drawings[shape_in(drawing)[:2]].append(drawing)
        for kind in ("images", "masks"):
            (path / kind).mkdir(parents=True)
        with (path / "metadata.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(("file_name", "text", "mask"))
            for i in range(count):
                draw = random.Random(f"{split} {i}")
                image, masks = scene(draw, drawings, split == "new")
                Image.fromarray(image).save(path / "images" / f"{i}.png")
                for j, (text, mask) in enumerate(sentences(draw, masks, split == "new")):
                    Image.fromarray(mask).save(path / "masks" / f"{i}_{j}.png")
                    table.writerow((f"images/{i}.png", text, f"masks/{i}_{j}.png"))
        print(f"{path}: {count} scenes")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
