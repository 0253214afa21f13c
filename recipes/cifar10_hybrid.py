"""CIFAR-10 from scratch: 50,000 images of 32 x 32, by five convolutions and three blocks.

python -m keras_vit fit cifar10_hybrid
"""

from keras_vit.config import Augment, Data, Optim, Recipe

recipe = Recipe(
    name="cifar10_hybrid",
    model=dict(variant=None, stem=((32, 1), (64, 2), (64, 1), (128, 2), (128, 1)), patch_size=1, width=128, depth=3,
               num_heads=4, mlp_dim=256, image_size=32, num_classes=10, pooling="gap", stochastic_depth=0.05),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=128),
    augment=Augment(crop="padded", crop_padding=4, flip=True, erase=0.25),
    optim=Optim(epochs=45, learning_rate=2e-3, weight_decay=0.05, warmup_epochs=2.0, label_smoothing=0.1),
)  # fmt: skip
