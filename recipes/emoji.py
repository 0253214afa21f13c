"""Emoji and their names: 3,054 drawings of 64 x 64 pixels in two styles, and their names and tags.

python -m keras_vit fit emoji data.source=folder:emoji

The drawings are Twemoji (CC-BY 4.0) and Noto Emoji (Apache 2.0), from the npm packages emoji-datasource-twitter and
emoji-datasource-google 16.0.0, names and tags from emojilib 4.0.3. Put them into `emoji/train`, `emoji/validation` and
`emoji/test`, each with a `metadata.csv` with the columns `file_name`, `name` and `tags`, which `;` separates. Both
drawings of a sign are in one split.
"""

from keras_vit.config import Augment, Contrast, Data, Optim, Recipe

recipe = Recipe(
    name="emoji",
    task=Contrast(width=128, length=32, vocabulary=1200, draw="some",
                  text=dict(width=96, depth=2, num_heads=4, mlp_dim=192, causal=True)),
    model=dict(variant=None, image_size=64, stem=((24, 2, 1), (48, 2, 1), (96, 2, 1), (128, 2, 1)), patch_size=1,
               width=128, depth=2, num_heads=4, mlp_dim=192, pooling="gap", stochastic_depth=0.1, num_classes=128),
    data=Data(source="folder:emoji", train="train", validation="validation", test="test", batch_size=256,
              columns={"texts": {"names": ["name", "tags"], "separator": ";"}}),
    augment=Augment(rotation=10.0, scale=0.15, shear=0.1, translation=0.08, jitter=0.3, erase=0.25),
    optim=Optim(optimizer="muon", epochs=60, learning_rate=4e-3, weight_decay=0.05, warmup_epochs=1.0),
)  # fmt: skip
