"""MNIST"""

from keras_vit.config import Augment, Data, Optim, Recipe

recipe = Recipe(
    name="mnist",
    model=dict(variant=None, patch_size=4, width=96, depth=4, num_heads=6, mlp_dim=192, image_size=28, channels=1,
               num_classes=10, stochastic_depth=0.1),
    data=Data(source="tfds:mnist", train="train[:90%]", validation="train[90%:]", test="test", batch_size=128),
    augment=Augment(rotation=15.0, scale=0.12, shear=0.15, translation=0.08),
    optim=Optim(epochs=60, learning_rate=1.5e-3, weight_decay=0.05, warmup_epochs=3.0, label_smoothing=0.1),
)  # fmt: skip
