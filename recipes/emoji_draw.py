"""Emoji drawn from their names: "grinning cat", from noise, 64 x 64 pixels.

python recipes/emoji_draw.py emoji drawings
python -m keras_vit fit emoji_draw data.source=folder:drawings
python -m keras_vit predict runs/emoji_draw --text "grinning cat" --count 8 --to drawn

Data are those of `emoji`; the first command copies the drawings of one style, 1,527 for training.
"""

from keras_vit.config import Augment, Data, Generate, Optim, Recipe

recipe = Recipe(
    name="emoji_draw",
    task=Generate(text=True, length=16, vocabulary=2000, example="grinning cat\nred heart\npizza", shift=4.0,
                  guidance=3.0, samples=128, every=20, tower=dict(width=96, depth=2, num_heads=4)),
    model=dict(variant=None, image_size=64, channels=3, patch_size=8, width=128, depth=4, num_heads=4, mlp_dim=256,
               predicts="image"),  # a patch has more values than a token
    data=Data(source="folder:drawings", train="train", validation="validation", test="test", batch_size=64,
              columns={"texts": "name"}),
    augment=Augment(translation=0.03),
    optim=Optim(optimizer="muon", epochs=100, learning_rate=1e-2, weight_decay=0.0, warmup_epochs=1.0, ema=0.999),
)  # fmt: skip


def main(source, folder, style="twitter"):
    """Copies the drawings of a style, of each split, and writes a table of their names next to them."""
    import csv
    import pathlib
    import shutil

    for split in ("train", "validation", "test"):
        read, write = pathlib.Path(source, split), pathlib.Path(folder, split)
        with (read / "metadata.csv").open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["style"] == style]
        write.mkdir(parents=True)
        with (write / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(("file_name", "name"))
            for row in rows:
                name = pathlib.Path(row["file_name"]).name
                shutil.copy(read / row["file_name"], write / name)
                table.writerow((name, row["name"]))
        print(f"{write}: {len(rows)} drawings")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
