"""MNIST: 60,000 training and 10,000 test images of handwritten digits.

python -m keras_vit fit mnist

Reached 99.51 % on the test set, and 99.54 % on the 5,000 training images kept for validation. The test set was used
once, after the last epoch of a single run. 50 epochs took 50 minutes on two CPU cores that also did other work.
"""

from keras_vit.config import Augment, Classify, Data, Optim, Reached, Recipe, Weights

recipe = Recipe(
    name="mnist",
    task=Classify(label_smoothing=0.1),
    model=dict(variant=None, patch_size=4, width=96, depth=6, num_heads=4, mlp_dim=192, image_size=28, channels=1,
               num_classes=10, pooling="gap", stochastic_depth=0.1),
    data=Data(source="tfds:mnist", train="train[:55000]", validation="train[55000:]", test="test", batch_size=128),
    augment=Augment(rotation=15.0, scale=0.15, shear=0.15, translation=0.08),
    optim=Optim(epochs=50, learning_rate=1.5e-3, weight_decay=0.05, warmup_epochs=3.0),
    weights=Weights(file="mnist.keras", sha256="46eff2e61dce85795ce85284b837c3895a74d9682bcd2a5977f15efe7f20d06f"),
    reached=Reached(test_accuracy=0.9951, minutes=50.0, device="2 CPU cores, x86-64", commit="7ea7314",
                    note="the cores were shared with other work"),
)  # fmt: skip
