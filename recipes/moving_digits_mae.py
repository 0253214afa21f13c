r"""Clips of moving digits without their labels: a plain ViT learns to reconstruct masked tubelets.

python recipes/moving_digits.py moving_digits
python -m keras_vit fit moving_digits_mae data.source=folder:moving_digits
"""

from keras_vit.config import Data, Optim, PretrainClips, Recipe

recipe = Recipe(
    name="moving_digits_mae",
    task=PretrainClips(frames=8, mask_ratio=0.75, normalize=False, decoder_width=64, decoder_depth=1, decoder_heads=2),
    model=dict(variant=None, image_size=40, channels=1, patch_size=8, tubelet=2, width=96, depth=4, num_heads=4,
               mlp_dim=384, pooling="gap", position="sincos1d"),
    data=Data(source="folder:moving_digits", train="train", validation="validation", test="test", batch_size=128),
    optim=Optim(optimizer="muon", epochs=5, learning_rate=4e-3, weight_decay=0.05, warmup_epochs=0.4),
)  # fmt: skip
