"""Captions of moving digits: "a seven moves down left", also of pairs of digit and direction that were never seen.

python recipes/moving_digits.py moving_digits
python recipes/moving_digits_captions.py moving_digits
python -m keras_vit fit moving_digits_captions data.source=folder:moving_digits
python -m keras_vit evaluate runs/moving_digits_captions unseen

The first command writes the clips of the recipe `moving_digits`, the second their captions: `metadata.csv`, with a
column of splits. Ten of the 80 pairs of a digit and a direction, one of each digit, are held back: their clips to train
on and to validate are in no split, and those to test in the split `unseen`.

Of 4,394 test clips of the 70 pairs that it learned, 98.68 % get exactly their caption; of 606 clips of the ten others,
96.37 %: the direction is right in all of these, and each wrong caption names another digit. It took 34 minutes of one
CPU core, shared with other work. A single run.
"""

from keras_vit.config import CaptionClips, Data, Optim, Reached, Recipe

recipe = Recipe(
    name="moving_digits_captions",
    task=CaptionClips(frames=8, length=8, vocabulary=128, text=dict(width=96, depth=2, num_heads=4, mlp_dim=192)),
    model=dict(variant=None, image_size=40, channels=1, stem=((24, 2), (48, 2), (96, 2)), patch_size=1, tubelet=2,
               width=96, depth=2, num_heads=4, mlp_dim=192),
    data=Data(source="folder:moving_digits", train="train", validation="validation", test="test", batch_size=64,
              columns={"splits": "split"}),
    optim=Optim(optimizer="muon", epochs=2, learning_rate=4e-3, weight_decay=0.05, warmup_epochs=0.2, xla=False),
    reached=Reached(scores=(("exact match", 0.9868), ("exact match of unseen pairs", 0.9637)), minutes=34.0,
                    device="2 CPU cores, x86-64", commit="433c2359", note="one core, shared with other work"),
)  # fmt: skip

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DIRECTIONS = ("right", "down right", "down", "down left", "left", "up left", "up", "up right")
HELD_BACK = {f"{digit} {DIRECTIONS[3 * digit % 8]}" for digit in range(10)}  # "0 right", "1 down left", ...
SPLITS = ("train", "validation", "test")


def caption(name):
    """Returns the caption of a class of `moving_digits`: of `"3 down left"`, `"a three moves down left"`."""
    digit, direction = name.split(" ", 1)
    word = NAMES[int(digit)]
    return f"{'an' if word == 'eight' else 'a'} {word} moves {direction}"


def rows(folder):
    """Yields the file, the caption and the split of each clip; those held back are tested, in a split of their own."""
    import pathlib

    for split in SPLITS:
        for path in sorted(pathlib.Path(folder, split).glob("*/*.apng")):
            held = path.parent.name in HELD_BACK
            if not held or split == "test":
                yield path.relative_to(folder).as_posix(), caption(path.parent.name), "unseen" if held else split


def main(folder):
    """Writes the table of captions of a folder that `moving_digits` wrote."""
    import csv
    import pathlib

    with pathlib.Path(folder, "metadata.csv").open("x", newline="") as file:
        table = csv.writer(file)
        table.writerow(("file_name", "caption", "split"))
        table.writerows(rows(folder))


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
