r"""Photographs made better in five ways by one model: larger by two and by three, less noise of two strengths, no JPEG.

python -m keras_vit fit restore_jobs data.source=folder:superres
python -m keras_vit predict runs/restore_jobs photo.png --job denoise25 --to better

Data are those of `superres_x2`. Each job has a head and a tail, and the blocks between are shared, as in Chen et al.
2021 (arXiv:2012.00364, "IPT"), which has 12 encoder and 12 decoder blocks and learns from ImageNet.

Reached a PSNR of 31.37 dB on Set5, the mean of the five jobs; what it is given has 26.26 dB. One run of 23 minutes on
two CPU cores that also did other work. Its last epochs still gained.
"""

from keras_vit.config import Augment, Data, Optim, Reached, Recipe, Restore

recipe = Recipe(
    name="restore_jobs",
    task=Restore(jobs=("x2", "x3", "denoise25", "denoise50", "jpeg40"), head_depth=1),
    model=dict(variant=None, stem=((32, 1, 2), (32, 1, 2)),  # (filters, stride, branch of n)
               patch_size=8, width=96, depth=3, num_heads=4, mlp_dim=192, image_size=48, position="sincos2d",
               pooling="none"),
    data=Data(source="folder:superres", train="train[:95%]", validation="train[95%:]", test="set5", batch_size=10,
              resize="window"),
    augment=Augment(crop="window", crop_shrink=2.0, flip=True),
    optim=Optim(epochs=25, optimizer="muon", learning_rate=3e-3, weight_decay=0.0, schedule="linear",
                warmup_epochs=1.0, xla=False),
    reached=Reached(scores=(("PSNR on Set5", 31.3679),), minutes=23.0, device="2 CPU cores, x86-64", commit="f97b1b4f",
                    note="the cores were shared with other work"),
)  # fmt: skip
