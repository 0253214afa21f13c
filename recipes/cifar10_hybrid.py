"""CIFAR-10 from scratch: 50,000 images of 32 x 32 pixels, seven convolutions and two blocks.

python -m keras_vit fit cifar10_hybrid

Reached 88.61 % on the test set of a JPEG copy of CIFAR-10, which is slightly lossy, and 89.1 % on the 1,000 training
images kept for validation. The test set was used once, after the last epoch of a single run. It took 104 minutes on two
CPU cores that also did other work.
"""

from keras_vit.config import Augment, Classify, Data, Optim, Reached, Recipe, Weights

recipe = Recipe(
    name="cifar10_hybrid",
    task=Classify(label_smoothing=0.1),
    model=dict(variant=None, stem=((32, 1), (64, 2, 2), (128, 2, 2)),  # (filters, stride, branch of n)
               patch_size=1, width=128, depth=2, num_heads=4, mlp_dim=256,
               image_size=32, num_classes=10, pooling="gap", stochastic_depth=0.05),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=128),
    augment=Augment(crop="padded", crop_padding=4, flip=True, erase=0.5),
    optim=Optim(optimizer="muon", epochs=36, learning_rate=4e-3, weight_decay=0.05, schedule="linear",
                warmup_epochs=0.5),
    weights=Weights(file="cifar10_hybrid.keras",
                    sha256="29a90dd2f835436ad614505f791547836fecf9ece2e5337a1957a85200817337"),
    reached=Reached(test_accuracy=0.8861, minutes=104.0, device="2 CPU cores, x86-64", commit="ff804a2",
                    note="the JPEG copy of CIFAR-10; the cores were shared with other work"),
)  # fmt: skip
