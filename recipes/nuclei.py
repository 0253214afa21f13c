"""Cell nuclei in microscopy images: 437 images of up to 360 pixels a side, two convolutions and four blocks.

python -m keras_vit fit nuclei data.source=folder:nuclei

The set is BBBC038 (Data Science Bowl 2018, https://bbbc.broadinstitute.org/BBBC038, CC0), with corrected masks. It has
a mask for each nucleus: join those of an image into one. Another split than ours gives another score. Put the images
into `nuclei/train/images` and `nuclei/val/images`, and one mask for each into `nuclei/train/masks` and
`nuclei/val/masks`: PNG files of the same names, 0 for the background and 1 for nuclei.

Reached a mean IoU of 0.917 on the 71 validation images, counted at their own size, after the last epoch of a single
run on 366 images. Head and loss had been chosen on the same validation images. It took 61 minutes on two CPU cores that
also did other work.
"""

from keras_vit.config import Augment, Data, Optim, Reached, Recipe, Segment, Weights

recipe = Recipe(
    name="nuclei",
    task=Segment(classes=("background", "nucleus"), head={"kind": "dpt", "width": 16}, dice=0.5),
    model=dict(variant=None, stem=((16, 2), (32, 1)),  # (filters, stride): DPT's head reads this fine map too
               patch_size=8, width=96, depth=4, num_heads=4, mlp_dim=192, image_size=256, position="sincos2d",
               pooling="none"),
    data=Data(source="folder:nuclei", train="train", validation="val", test="val", batch_size=16),
    augment=Augment(crop="inception", crop_area=0.25, flip=True, rotation=20.0, jitter=0.3),
    optim=Optim(epochs=150, learning_rate=2e-3, weight_decay=0.05, warmup_epochs=3.0, ema=0.99,
                xla=False),  # twice as fast on two cores, by convolutions on 128 x 128 positions
    weights=Weights(file="nuclei.keras", sha256="b9024a2dfc79cd51d855d6a2535c8366d85a23904cdbf518080d0b3d8cc5e47f"),
    reached=Reached(scores=(("mean IoU on val", 0.9165),), minutes=60.8, device="2 CPU cores, x86-64", commit="976e6d0",
                    note="the cores were shared with other work"),
)  # fmt: skip
