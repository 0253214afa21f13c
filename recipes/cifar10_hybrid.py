"""CIFAR-10 from scratch: 50,000 images of 32 x 32 pixels, five convolutions and three blocks.

python -m keras_vit fit cifar10_hybrid

Reached 86.44 % on the test set of a JPEG copy of CIFAR-10, which is slightly lossy, and 87.2 % on the 1,000 training
images kept for validation. The test set was used once, after the last epoch of a single run. It took 143 minutes on two
CPU cores that also did other work.
"""

from keras_vit.config import Augment, Classify, Data, Optim, Reached, Recipe, Weights

recipe = Recipe(
    name="cifar10_hybrid",
    task=Classify(label_smoothing=0.1),
    model=dict(variant=None, stem=((32, 1), (64, 2), (64, 1), (128, 2), (128, 1)),  # (filters, stride)
               patch_size=1, width=128, depth=3, num_heads=4, mlp_dim=256,
               image_size=32, num_classes=10, pooling="gap", stochastic_depth=0.05),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=128),
    augment=Augment(crop="padded", crop_padding=4, flip=True, erase=0.25),
    optim=Optim(epochs=45, learning_rate=2e-3, weight_decay=0.05, warmup_epochs=2.0),
    weights=Weights(file="cifar10_hybrid.keras",
                    sha256="256aeea723deac2e4caa602f2f42e7174d59c10d4433ed5866911dbfdd3ee105"),
    reached=Reached(test_accuracy=0.8644, minutes=143.0, device="2 CPU cores, x86-64", commit="4d8c095",
                    note="the JPEG copy of CIFAR-10; the cores were shared with other work"),
)  # fmt: skip
