"""Street scenes: CamVid's 701 frames of 480 x 360 pixels, 11 classes, from scratch.

python -m keras_vit fit camvid data.source=folder:camvid

The set is that of Brostow et al. 2009 with SegNet's 11 classes and its split (Badrinarayanan et al. 2017,
arXiv:1511.00561, which reports a test mean IoU of 0.60). Put the images into `camvid/train/images`, `camvid/val/images`
and `camvid/test/images`, and one mask for each into `masks` next to `images`: PNG files of the same names, 0 to 10 for
the classes in the order below and 11 for what is none of them.
"""

from keras_vit.config import Augment, Data, Optim, Recipe, Segment

recipe = Recipe(
    name="camvid",
    task=Segment(classes=("sky", "building", "pole", "road", "pavement", "tree", "sign", "fence", "car", "pedestrian",
                          "bicyclist"), void=11, head="dpt", head_width=32, class_weights=True),
    model=dict(variant=None, stem=((24, 2), (48, 2), (48, 1)),  # (filters, stride): DPT's head reads this map too
               patch_size=3, width=128, depth=6, num_heads=4, mlp_dim=512, image_size=(360, 480), position="sincos2d",
               stochastic_depth=0.1, pooling="none"),
    data=Data(source="folder:camvid", train="train", validation="val", test="test", batch_size=8),
    augment=Augment(crop="inception", crop_area=0.3, flip=True, jitter=0.3),
    optim=Optim(epochs=100, learning_rate=1.5e-3, weight_decay=0.05, warmup_epochs=3.0, ema=0.99,
                xla=False),  # faster on a CPU, by convolutions on 90 x 120 positions
)  # fmt: skip
