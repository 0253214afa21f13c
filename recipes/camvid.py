"""Street scenes: CamVid's 701 frames of 480 x 360 pixels, 11 classes, from scratch, at two thirds of that size.

python -m keras_vit fit camvid data.source=folder:camvid

The set is that of Brostow et al. 2009 with SegNet's 11 classes and its split (Badrinarayanan et al. 2017,
arXiv:1511.00561, which reports a test mean IoU of 0.60). Put the images into `camvid/train/images`, `camvid/val/images`
and `camvid/test/images`, and one mask for each into `masks` next to `images`: PNG files of the same names, 0 to 10 for
the classes in the order below and 11 for what is none of them.

Reached a mean IoU of 0.493 on the test images and 0.617 on the validation images, counted at their own size, after the
last epoch of a single run. The two are far apart: validation images are of a drive that is in the training images too,
and of three quarters of the test images no other image of their drive is anywhere. Poles, signs and fences are the
worst, 0.13 to 0.16: they are a few pixels wide. A larger `model.image_size` needs more time. It took 92 minutes on two
slow CPU cores that also did other work.

A second run, `task.class_weights=false augment.jitter=0.5`, was best on the validation images after 50 epochs, 0.640,
and reached 0.494 on the test images, which were looked at once for each run.
"""

from keras_vit.config import Augment, Data, Optim, Reached, Recipe, Segment

recipe = Recipe(
    name="camvid",
    task=Segment(classes=("sky", "building", "pole", "road", "pavement", "tree", "sign", "fence", "car", "pedestrian",
                          "bicyclist"), void=11, head="dpt", head_width=32, class_weights=True, dice=0.5),
    model=dict(variant=None, stem=((24, 2), (48, 2), (48, 1)),  # (filters, stride): DPT's head reads this map too
               patch_size=5, width=128, depth=6, num_heads=4, mlp_dim=512, image_size=(240, 320), position="sincos2d",
               stochastic_depth=0.1, pooling="none"),
    data=Data(source="folder:camvid", train="train", validation="val", test="test", batch_size=8),
    augment=Augment(crop="inception", crop_area=0.4, flip=True, jitter=0.3),
    optim=Optim(epochs=80, learning_rate=1.5e-3, weight_decay=0.05, warmup_epochs=3.0, ema=0.99,
                xla=False),  # faster on a CPU, by convolutions on 60 x 80 positions
    reached=Reached(scores=(("mean IoU on test", 0.4925), ("mean IoU on val", 0.6175)), minutes=92.1,
                    device="2 CPU cores, x86-64", commit="b6b97fa", note="the cores were shared with other work"),
)  # fmt: skip
