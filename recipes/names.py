"""Names of countries, languages and currencies, from German to English, letter by letter.

pip install babel
python recipes/names.py names.csv
python -m keras_vit fit names data.source=table:names.csv
python -m keras_vit predict runs/names "Brasilianischer Real" Schweiz

The first two commands write 1,243 pairs of names of Unicode's CLDR, which Babel has. A tenth of them, 124, is held back
for the test; pairs with the same German name are in one split.

Of the 124, 28.2 % are written exactly, and 37.9 % of the letters are wrong; with `task.beams=4` 28.2 % and 36.5 %. To
copy the German name is right for 32.3 %, and 35.4 % of the letters are wrong: many names are the same in both
languages, and 994 pairs are few to learn from. Of the 84 that differ, 11 are exact. It took 24 minutes on one shared
core. A run whose decoder saw the padding of the source had 25.8 % and 34.1 %.
"""

from keras_vit.config import Data, Optim, Reached, Recipe, Translate

recipe = Recipe(
    name="names",
    task=Translate(length=52, letters=True, vocabulary=97, every=10,
                   text=dict(width=128, depth=2, num_heads=4, mlp_dim=256, dropout=0.2)),
    model=dict(width=128, depth=2, num_heads=4, mlp_dim=256, dropout=0.2),
    data=Data(source="table:names.csv", columns={"sources": "german", "texts": "english"}, train="all[:80%]",
              validation="all[80%:90%]", test="all[90%:]", batch_size=32),
    optim=Optim(optimizer="muon", epochs=50, learning_rate=4e-3, weight_decay=0.05, warmup_epochs=2.0),
    reached=Reached(scores=(("exact match", 0.2823), ("character error rate", 0.3791)), minutes=24.0,
                    device="1 CPU core, x86-64", commit="4a9b9abc", note="the core was shared with other work"),
)  # fmt: skip

KINDS = ("territories", "languages", "currencies")


def main(path):
    """Writes the table: each pair of names once, in the order of the German ones."""
    import csv

    from babel import Locale

    german, english = Locale("de"), Locale("en")
    pairs = {
        (getattr(german, kind)[code], name)
        for kind in KINDS
        for code, name in getattr(english, kind).items()
        if code in getattr(german, kind)
    }
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("german", "english"), *sorted(pairs)])
    print(f"{path}: {len(pairs)} names")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
