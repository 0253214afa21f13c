"""Moving digits: clips of 8 frames, in which one digit of MNIST moves in one of eight directions; 80 classes.

python recipes/moving_digits.py moving_digits
python -m keras_vit fit moving_digits data.source=folder:moving_digits
python -m keras_vit predict moving_digits clip.apng

The first command writes 55,000 clips to train on, 2,000 to validate and 5,000 to test, as animated PNG files of
40 x 40 pixels in a folder for each class, such as `3 down left`. A digit starts anywhere, moves 1 to 3 pixels a frame,
and comes back in at the other side of the frame. So each single frame is equally likely in all directions: who sees
one frame names the right direction one time in eight, whatever the model. Flips are off: they change the direction.

Of the 5,000 test clips, 98.26 % get the right class: the digit is right in 98.26 %, and the direction in all. Where
the first frame is repeated eight times, the digit is right in 94.4 % and the direction in 12.7 %. Two epochs took 25
minutes on two CPU cores shared with other work: the run had about half a core's time.
"""

from keras_vit.config import ClassifyClips, Data, Optim, Reached, Recipe, Weights

recipe = Recipe(
    name="moving_digits",
    task=ClassifyClips(frames=8),
    model=dict(variant=None, image_size=40, channels=1, stem=((24, 2), (48, 2), (96, 2)), patch_size=1, tubelet=2,
               width=96, depth=2, num_heads=4, mlp_dim=192, pooling="gap", num_classes=80),
    data=Data(source="folder:moving_digits", train="train", validation="validation", test="test", batch_size=64),
    optim=Optim(optimizer="muon", epochs=2, learning_rate=4e-3, weight_decay=0.05, warmup_epochs=0.2, xla=False),
    weights=Weights(file="moving_digits.keras",
                    sha256="50832cd18fe26aea6c9d0df46dc5a8882ff78efaac20459d54a3f4240074cf85"),
    reached=Reached(test_accuracy=0.9826, scores=(("digit", 0.9826), ("direction", 1.0)), minutes=25.0,
                    device="2 CPU cores, x86-64", commit="64d5eac6", note="the cores were shared with other work"),
)  # fmt: skip

SPLITS = {"train": 55_000, "validation": 2_000, "test": 5_000}
SIDE, FRAMES, FASTEST = 40, 8, 3
DIRECTIONS = {"right": (0, 1), "down right": (1, 1), "down": (1, 0), "down left": (1, -1), "left": (0, -1),
              "up left": (-1, -1), "up": (-1, 0), "up right": (-1, 1)}  # fmt: skip
SEEDS = {name: i for i, name in enumerate(SPLITS)}


def clip(image, direction, draw):
    """Returns a clip of a moving digit, uint8 `(FRAMES, SIDE, SIDE)`: its start and its speed are drawn.

    Args:
        image: uint8 array, `(rows, columns)`, smaller than a frame.
        direction: A key of `DIRECTIONS`.
        draw: A NumPy random generator.
    """
    import numpy as np

    frame = np.zeros((SIDE, SIDE), "uint8")
    frame[: image.shape[0], : image.shape[1]] = image
    start, step = draw.integers(0, SIDE, 2), draw.integers(1, FASTEST + 1) * np.array(DIRECTIONS[direction])
    return np.stack([np.roll(frame, start + i * step, axis=(0, 1)) for i in range(FRAMES)])


def clips(images, labels, split, count):
    """Yields clips of a split and their classes, such as `"3 down left"`, as often in every direction."""
    import numpy as np

    names = [*DIRECTIONS]
    for i in range(count):
        draw, place = np.random.default_rng((SEEDS[split], i)), i % len(images)
        direction = names[i % len(names)]
        yield clip(images[place], direction, draw), f"{labels[place]} {direction}"


def digits(split):
    """Returns MNIST's images and labels of a split: those to train on and to validate are apart, as writers are."""
    import tensorflow_datasets as tfds

    part = {"train": "train[:55000]", "validation": "train[55000:]", "test": "test"}[split]
    images, labels = tfds.as_numpy(tfds.load("mnist", split=part, as_supervised=True, batch_size=-1))
    return images[..., 0], labels


def main(folder, splits=SPLITS):
    """Writes clips of some splits: the same clips for the same versions of NumPy."""
    import pathlib

    from PIL import Image

    for split, count in splits.items():
        pathlib.Path(folder, split).mkdir(parents=True)
        for i, (frames, name) in enumerate(clips(*digits(split), split, count)):
            path = pathlib.Path(folder, split, name)
            path.mkdir(exist_ok=True)
            first, *rest = map(Image.fromarray, frames)
            first.save(path / f"{i}.apng", "PNG", save_all=True, append_images=rest, duration=100, loop=0)
        print(f"{folder}/{split}: {count} clips")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
