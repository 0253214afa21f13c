r"""Street scenes: CamVid's 701 frames of 480 x 360 pixels, 11 classes, from scratch, at two thirds of that size first.

python -m keras_vit fit camvid data.source=folder:camvid model.dtype=mixed_bfloat16
python -m keras_vit fit camvid data.source=folder:camvid model.weights=runs/camvid/best.keras \
    "model.image_size=(360, 480)" model.dtype=mixed_bfloat16 optim.epochs=12 optim.learning_rate=1e-3 \
    optim.warmup_epochs=1 model.stochastic_depth=0.2 --workdir runs/camvid_large

The second command continues at the full size, with the encoder and the head of the first. In bfloat16, a step takes
three quarters of the time, on processors with instructions for it: `avx512_bf16` or `amx_bf16` in `/proc/cpuinfo`.
Leave `model.dtype` out on others.

The set is that of Brostow et al. 2009 with SegNet's 11 classes and its split (Badrinarayanan et al. 2017,
arXiv:1511.00561, which reports a test mean IoU of 0.60). Put the images into `camvid/train/images`, `camvid/val/images`
and `camvid/test/images`, and one mask for each into `masks` next to `images`: PNG files of the same names, 0 to 10 for
the classes in the order below and 11 for pixels of no class.

Reached a mean IoU of 0.581 on the test images and 0.708 on the validation images after both commands, counted at the
masks' own size; 0.571 and 0.699 after the first alone. They took 106 minutes of one CPU core and 21 of two, next to
other work. The two sets differ much: validation images come from a drive that the training images show too, but three
quarters of the test images come from drives without any other image. Fences, poles, signs and bicyclists are the worst
on the test images, 0.18 to 0.39: most are a few pixels wide. Published are 0.51 for ENet and 0.67 for FC-DenseNet103,
both from scratch at this size.

The test images were used five times: after each of the two commands; and before, with plain convolutions and AdamW:
0.494 after 80 epochs (0.493 with `task.class_weights=true augment.jitter=0.3`), 0.507 after 12 more at the full size.
"""

from keras_vit.config import Augment, Data, Optim, Reached, Recipe, Segment

recipe = Recipe(
    name="camvid",
    task=Segment(classes=("sky", "building", "pole", "road", "pavement", "tree", "sign", "fence", "car", "pedestrian",
                          "bicyclist"), void=11, head={"kind": "dpt", "width": 32}, dice=0.5),
    # (filters, stride, convolutions in the residual branch): DPT's head reads this map too
    model=dict(variant=None, stem=((24, 2, 1), (48, 2, 2), (48, 1, 2)), patch_size=5, width=128, depth=6, num_heads=4,
               mlp_dim=512, image_size=(240, 320), position="sincos2d", stochastic_depth=0.1, pooling="none"),
    data=Data(source="folder:camvid", train="train", validation="val", test="test", batch_size=8),
    augment=Augment(crop="inception", crop_area=0.25, flip=True, jitter=0.5),
    optim=Optim(epochs=96, optimizer="muon", learning_rate=3e-3, weight_decay=0.05, schedule="linear",
                warmup_epochs=3.0, ema=0.99, xla=False),  # faster on a CPU, by convolutions on 60 x 80 positions
    reached=Reached(scores=(("mean IoU on test", 0.5705), ("mean IoU on val", 0.6988)), minutes=106.0,
                    device="1 CPU core, x86-64", commit="ea4f8a7",
                    note="the first command; the other core did other work"),
)  # fmt: skip
