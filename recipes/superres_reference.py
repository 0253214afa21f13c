r"""Photographs at twice the size, with the help of a second picture of the same thing at that size.

python -m keras_vit fit superres_reference data.source=folder:superres
python -m keras_vit predict runs/superres_reference photo.png --reference sharp.png --to larger

Data and starting weights are those of `superres_x2`. The reference is searched for textures as in Yang et al. 2020
(arXiv:2006.04139, "TTSR"). In training it is the photograph itself, shifted by up to 8 pixels and turned by up to 5
degrees, and for a quarter of the windows that of another photograph. Not yet trained.
"""

from keras_vit.config import Augment, Data, Optim, Recipe, Restore

recipe = Recipe(
    name="superres_reference",
    task=Restore(scale=2, luma=True, head_depth=1, reference=True),
    model=dict(variant=None, stem=((48, 1, 2), (48, 1, 2), (48, 1, 2)),  # (filters, stride, branch of n)
               patch_size=4, width=96, depth=3, num_heads=4, mlp_dim=192, image_size=28, position="sincos2d",
               pooling="none", weights="superres_x2"),
    data=Data(source="folder:superres", train="train[:95%]", validation="train[95%:]", test="set5", batch_size=8,
              resize="window"),
    augment=Augment(crop="window", crop_shrink=2.0, flip=True),
    optim=Optim(epochs=45, optimizer="muon", learning_rate=2e-3, weight_decay=0.0, schedule="linear",
                warmup_epochs=2.0, xla=False),
)  # fmt: skip
