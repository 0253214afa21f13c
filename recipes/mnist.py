"""MNIST"""

from keras_vit.config import Augment, Data, Optim, Recipe

recipe = Recipe(
    name="mnist",
    model=dict(variant=None, patch_size=4, width=96, depth=6, num_heads=4, mlp_dim=192, image_size=28, channels=1,
               num_classes=10, pooling="gap", stochastic_depth=0.1),
    data=Data(source="tfds:mnist", train="train[:55000]", validation="train[55000:]", test="test", batch_size=128),
    augment=Augment(rotation=15.0, scale=0.15, shear=0.15, translation=0.08),
    optim=Optim(epochs=50, learning_rate=1.5e-3, weight_decay=0.05, warmup_epochs=3.0, label_smoothing=0.1),
)  # fmt: skip
