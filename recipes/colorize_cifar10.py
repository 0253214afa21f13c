"""Colors for gray images: CIFAR-10, 32 x 32 pixels, without labels.

python -m keras_vit fit colorize_cifar10

The mean absolute error finds the colors of sky, water, grass and sand. Objects that may have any color stay brown.
Zhang et al. 2016 (arXiv:1603.08511) classify colors instead.

Reached a PSNR of 26.39 dB on the test images, of red, green and blue; the gray images themselves have 25.64 dB. It took
16 minutes on two CPU cores that also did other work. Images are those of a JPEG copy of CIFAR-10.
"""

from keras_vit.config import Augment, Data, Optim, Reached, Recipe, Restore

recipe = Recipe(
    name="colorize_cifar10",
    task=Restore(gray=True, head_depth=1),
    model=dict(variant=None, stem=((32, 2, 2),),  # (filters, stride, branch of n)
               channels=1, patch_size=2, width=96, depth=4, num_heads=4, mlp_dim=192, image_size=32,
               position="sincos2d", pooling="none"),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=64,
              resize="window"),
    augment=Augment(crop="window", flip=True),
    optim=Optim(epochs=8, optimizer="muon", learning_rate=3e-3, weight_decay=0.0, schedule="linear",
                warmup_epochs=0.5, xla=False),
    reached=Reached(scores=(("PSNR on test", 26.3855),), minutes=16.0, device="2 CPU cores, x86-64", commit="eae1ef9",
                    note="the JPEG copy of CIFAR-10; the cores were shared with other work"),
)  # fmt: skip
