"""Two moving digits in a clip of 8 frames: a box around each in the middle frame, and what it is and does, "7 left".

python recipes/moving_digits_boxes.py moving_boxes
python -m keras_vit fit moving_digits_boxes data.source=folder:moving_boxes
python -m keras_vit predict runs/moving_digits_boxes moving_boxes/test --json found.json

The first command writes 20,000 clips to train on, 1,000 to validate and 1,000 to test, as animated PNG files of 48 x 48
pixels, and for each split `annotations.json`, COCO's file, with the boxes of the middle frames. The class of a box is a
digit and one of four directions, 40 in all. In the middle frame the two digits stand anywhere, apart; before and after
it each moves 1 to 3 pixels a frame, over or under the other and out of the picture. So the middle frame alone says
nothing about the directions. The model sees every other frame. Nothing is flipped: the mirror of a digit is none.

In three epochs it learned where digits are, and not yet which: on the test clips the average precision of boxes at an
IoU of 0.5, whatever their class, is 0.983, and the mean over IoUs of 0.5 to 0.95 is 0.855. With the 40 classes mAP50 is
0.011. Of the boxes that are found, 25.9 % name the right digit, and 24.2 % the right direction, as chance does. It took
23 minutes, of which the run had 10 of one core's time, on these clips as arrays in memory. A single run; more epochs
were not tried, nor a start from the weights of `moving_digits`.
"""

from keras_vit.config import Data, DetectClips, Optim, Reached, Recipe

DIRECTIONS = {"right": (0, 1), "down": (1, 0), "left": (0, -1), "up": (-1, 0)}
CLASSES = tuple(f"{digit} {direction}" for digit in range(10) for direction in DIRECTIONS)

recipe = Recipe(
    name="moving_digits_boxes",
    task=DetectClips(classes=CLASSES, frames=4, stride=2, most=10, head={"kind": "points", "width": 32}),
    model=dict(variant=None, image_size=48, channels=1, stem=((32, 2), (64, 2)), patch_size=2, tubelet=2,
               width=96, depth=2, num_heads=4, mlp_dim=192),
    data=Data(source="folder:moving_boxes", train="train", validation="validation", test="test", batch_size=64),
    optim=Optim(optimizer="muon", epochs=3, learning_rate=4e-3, weight_decay=0.05, warmup_epochs=0.2, xla=False),
    reached=Reached(scores=(("mAP50", 0.0105), ("mAP", 0.0086), ("AP50 of boxes alone", 0.9827), ("digit", 0.2588),
                            ("direction", 0.2417)), minutes=23.2, device="2 CPU cores, x86-64", commit="e3a5b12a",
                    note="the cores were shared with other work; where digits are was learned, not which"),
)  # fmt: skip

SPLITS = {"train": 20_000, "validation": 1_000, "test": 1_000}
SIDE, FRAMES, FASTEST = 48, 8, 3
SEEDS = {name: i for i, name in enumerate(SPLITS)}


def clip(images, directions, draw):
    """Returns a clip of two moving digits, uint8 `(FRAMES, SIDE, SIDE)`, and their boxes in the middle frame.

    Args:
        images: Two uint8 arrays, `(rows, columns)`, without empty borders.
        directions: A key of `DIRECTIONS` for each.
        draw: A NumPy random generator.

    Returns:
        The clip, and for each digit a list of left, top, width and height, integers.
    """
    import numpy as np

    apart = False
    while not apart:
        corners = [draw.integers(0, SIDE - np.array(image.shape) + 1) for image in images]  # top, left
        (first, second), ends = corners, [corner + image.shape for corner, image in zip(corners, images)]
        apart = (ends[0] <= second).any() or (ends[1] <= first).any()
    around = FASTEST * FRAMES // 2  # pixels beyond the frame that a digit may reach
    canvas = np.zeros((FRAMES, SIDE + 2 * around, SIDE + 2 * around), "uint8")
    for image, corner, direction in zip(images, corners, directions):
        step = draw.integers(1, FASTEST + 1) * np.array(DIRECTIONS[direction])
        for i, frame in enumerate(canvas):
            top, left = corner + around + (i - FRAMES // 2) * step
            seen = frame[top : top + image.shape[0], left : left + image.shape[1]]
            np.maximum(seen, image, out=seen)
    boxes = [[*corner.tolist()[::-1], *image.shape[::-1]] for corner, image in zip(corners, images)]
    return canvas[:, around : around + SIDE, around : around + SIDE], boxes


def clips(images, labels, split, count):
    """Yields clips of a split and, for each of its two digits, a class and a box."""
    import numpy as np

    for i in range(count):
        draw = np.random.default_rng((SEEDS[split], i))
        places = (2 * i % len(images), draw.integers(len(images)))
        directions = draw.choice([*DIRECTIONS], 2).tolist()
        frames, boxes = clip([trimmed(images[place]) for place in places], directions, draw)
        names = [f"{labels[place]} {direction}" for place, direction in zip(places, directions)]
        yield frames, [*zip(names, boxes)]


def trimmed(image):
    """Returns a digit without the empty rows and columns around it."""
    rows, columns = (image.any(axis).nonzero()[0] for axis in (1, 0))
    return image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def digits(split):
    """Returns MNIST's images and labels of a split: those to train on and to validate are apart, as writers are."""
    import tensorflow_datasets as tfds

    part = {"train": "train[:55000]", "validation": "train[55000:]", "test": "test"}[split]
    images, labels = tfds.as_numpy(tfds.load("mnist", split=part, as_supervised=True, batch_size=-1))
    return images[..., 0], labels


def main(folder, splits=SPLITS):
    """Writes clips of some splits and their boxes: the same for the same versions of NumPy."""
    import json
    import pathlib

    from PIL import Image

    for split, count in splits.items():
        place = pathlib.Path(folder, split)
        (place / "clips").mkdir(parents=True)
        categories = [{"id": i, "name": name} for i, name in enumerate(CLASSES)]
        table = {"images": [], "annotations": [], "categories": categories}
        for i, (frames, objects) in enumerate(clips(*digits(split), split, count)):
            first, *rest = map(Image.fromarray, frames)
            first.save(place / "clips" / f"{i}.apng", "PNG", save_all=True, append_images=rest, duration=100, loop=0)
            table["images"].append({"id": i, "file_name": f"{i}.apng", "width": SIDE, "height": SIDE})
            for name, box in objects:
                table["annotations"].append({"id": len(table["annotations"]), "image_id": i, "bbox": box,
                                             "category_id": CLASSES.index(name), "area": box[2] * box[3],
                                             "iscrowd": 0})  # fmt: skip
        (place / "annotations.json").write_text(json.dumps(table))
        print(f"{folder}/{split}: {count} clips")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
