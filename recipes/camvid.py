r"""Street scenes: CamVid's 701 frames of 480 x 360 pixels, 11 classes, from scratch, at two thirds of that size first.

python -m keras_vit fit camvid data.source=folder:camvid
python -m keras_vit fit camvid data.source=folder:camvid model.weights=runs/camvid/best.keras \
    "model.image_size=(360, 480)" optim.epochs=12 optim.learning_rate=5e-4 optim.warmup_epochs=1 \
    model.stochastic_depth=0.2 augment.crop_area=0.25 --workdir runs/camvid_large

The second command continues at the full size, with the encoder and the head of the first.

The set is that of Brostow et al. 2009 with SegNet's 11 classes and its split (Badrinarayanan et al. 2017,
arXiv:1511.00561, which reports a test mean IoU of 0.60). Put the images into `camvid/train/images`, `camvid/val/images`
and `camvid/test/images`, and one mask for each into `masks` next to `images`: PNG files of the same names, 0 to 10 for
the classes in the order below and 11 for pixels of no class.

Reached a mean IoU of 0.507 on the test images and 0.639 on the validation images after both commands, counted at the
masks' own size; 0.494 and 0.640 after the first alone. The two sets differ much: validation images come from a drive
that the training images show too, but three quarters of the test images come from drives without any other image.
Fences, poles, signs and bicyclists are the worst on the test images, 0.13 to 0.24: most are a few pixels wide. The test
images were used three times: after each of the two commands, and after a run of 80 epochs with
`task.class_weights=true augment.jitter=0.3`, which reached 0.493. It took 73 and 36 minutes on two CPU cores that also
did other work.
"""

from keras_vit.config import Augment, Data, Optim, Reached, Recipe, Segment

recipe = Recipe(
    name="camvid",
    task=Segment(classes=("sky", "building", "pole", "road", "pavement", "tree", "sign", "fence", "car", "pedestrian",
                          "bicyclist"), void=11, head={"kind": "dpt", "width": 32}, dice=0.5),
    model=dict(variant=None, stem=((24, 2), (48, 2), (48, 1)),  # (filters, stride): DPT's head reads this map too
               patch_size=5, width=128, depth=6, num_heads=4, mlp_dim=512, image_size=(240, 320), position="sincos2d",
               stochastic_depth=0.1, pooling="none"),
    data=Data(source="folder:camvid", train="train", validation="val", test="test", batch_size=8),
    augment=Augment(crop="inception", crop_area=0.4, flip=True, jitter=0.5),
    optim=Optim(epochs=80, learning_rate=1.5e-3, weight_decay=0.05, warmup_epochs=3.0, ema=0.99,
                xla=False),  # faster on a CPU, by convolutions on 60 x 80 positions
    reached=Reached(scores=(("mean IoU on test", 0.4939), ("mean IoU on val", 0.6404)), minutes=73.0,
                    device="2 CPU cores, x86-64", commit="9e8b38b", note="the first command; the cores were shared"),
)  # fmt: skip
