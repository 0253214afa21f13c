"""Fashion-MNIST: 60,000 training and 10,000 test images of clothes.

python -m keras_vit fit fashion_mnist

A plain ViT: patches of 4 x 4 pixels, six blocks of width 96. Images are flipped, because mirrored clothes are
still clothes.
"""

from keras_vit.config import Augment, Classify, Data, Optim, Recipe

recipe = Recipe(
    name="fashion_mnist",
    task=Classify(label_smoothing=0.1),
    model=dict(variant=None, patch_size=4, width=96, depth=6, num_heads=4, mlp_dim=192, image_size=28, channels=1,
               num_classes=10, pooling="gap", stochastic_depth=0.1),
    data=Data(source="tfds:fashion_mnist", train="train[:55000]", validation="train[55000:]", test="test"),
    augment=Augment(crop="padded", crop_padding=2, flip=True, erase=0.25),
    optim=Optim(epochs=50, learning_rate=1.5e-3, weight_decay=0.05, warmup_epochs=3.0),
)  # fmt: skip
