"""Photographs at twice the size: 200 of ImageNet's validation images, tested on Set5 and Set14.

python -m keras_vit fit superres_x2 data.source=folder:superres
"""

from keras_vit.config import Augment, Data, Optim, Recipe, Restore

recipe = Recipe(
    name="superres_x2",
    task=Restore(scale=2, luma=True, head_depth=1),
    model=dict(variant=None, stem=((48, 1, 2), (48, 1, 2), (48, 1, 2)),  # (filters, stride, branch of n)
               patch_size=4, width=96, depth=3, num_heads=4, mlp_dim=192, image_size=40, position="sincos2d",
               pooling="none"),
    data=Data(source="folder:superres", train="train[:95%]", validation="train[95%:]", test="set5", batch_size=8,
              resize="window"),
    augment=Augment(crop="window", crop_shrink=2.0, flip=True),
    optim=Optim(epochs=1100, optimizer="muon", learning_rate=3e-3, weight_decay=0.0, schedule="linear",
                warmup_epochs=10.0, xla=False),
)  # fmt: skip
