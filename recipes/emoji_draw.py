"""Emoji drawn from their names: "red apple", from noise, 64 x 64 pixels.

python recipes/emoji_draw.py emoji drawings
python -m keras_vit fit emoji_draw data.source=folder:drawings
python -m keras_vit predict runs/emoji_draw --text "red apple" --count 8 --to drawn

Data are those of `emoji`; the first command copies the drawings of one style, 1,527 for training.

Colors and outlines come, details do not: a soccer ball is round, black and white, a flag has the wrong stripes. Edges
are often black, from the shifts of the augmentation. The judge is the shipped `emoji`, which knows the drawings: among
1,527 training names it finds that of a drawing first for 8 % of 200, and among the first five for 23 %; of the real
drawings 44 and 72 %, by chance 0.1 and 0.3 %. Of 100 names that were not in training, among 194, 10 and 22 %, by chance
0.5 and 2.6 %: a face becomes a face. One run of 100 epochs, guidance 3, 25 steps; 21 minutes of one core's time.
"""

from keras_vit.config import Augment, Data, Generate, Optim, Reached, Recipe

recipe = Recipe(
    name="emoji_draw",
    task=Generate(text=True, length=16, vocabulary=2000, example="red apple\nsoccer ball\ncat face", shift=4.0,
                  guidance=3.0, samples=128, every=20, tower=dict(width=96, depth=2, num_heads=4)),
    model=dict(variant=None, image_size=64, channels=3, patch_size=8, width=128, depth=4, num_heads=4, mlp_dim=256,
               predicts="image"),  # a patch has more values than a token
    data=Data(source="folder:drawings", train="train", validation="validation", test="test", batch_size=64,
              columns={"texts": "name"}),
    augment=Augment(translation=0.03),
    optim=Optim(optimizer="muon", epochs=100, learning_rate=1e-2, weight_decay=0.0, warmup_epochs=1.0, ema=0.999),
    reached=Reached(scores=(("R@1 of names", 0.08), ("R@5 of names", 0.23)), minutes=21.0,
                    device="1 CPU core, x86-64", commit="1d998574", note="minutes of the core: others shared it"),
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
