"""Moving digits and their captions in one space: "a seven moves left" finds its clips, and clips their captions.

python recipes/moving_digits.py moving_digits
python recipes/moving_digits_captions.py moving_digits
python -m keras_vit fit moving_digits_pairs data.source=folder:moving_digits
python -m keras_vit embed moving_digits/test --model runs/moving_digits_pairs --projected --to clips.npz
python -m keras_vit nearest clips.npz --text "a seven moves left"

Clips, captions and the ten pairs of a digit and a direction that are held back are those of the recipe
`moving_digits_captions`.
"""

from keras_vit.config import ContrastClips, Data, Optim, Recipe

recipe = Recipe(
    name="moving_digits_pairs",
    task=ContrastClips(frames=8, width=64, length=8, vocabulary=128,
                       text=dict(width=64, depth=2, num_heads=4, mlp_dim=128)),
    model=dict(variant=None, image_size=40, channels=1, stem=((24, 2), (48, 2), (96, 2)), patch_size=1, tubelet=2,
               width=96, depth=2, num_heads=4, mlp_dim=192, pooling="gap"),
    data=Data(source="folder:moving_digits", train="train[:40%]", validation="validation", test="test", batch_size=64,
              columns={"splits": "split"}),
    optim=Optim(optimizer="muon", epochs=2, learning_rate=4e-3, weight_decay=0.05, warmup_epochs=0.2, xla=False),
)  # fmt: skip
