"""CIFAR-100 from scratch: 50,000 images of 32 x 32 pixels in a hundred classes, with a convolutional stem, for a GPU.

python -m keras_vit fit cifar100

Five convolutions and six blocks of width 256. A class has few images, so MixUp and CutMix are on.
"""

from keras_vit.config import Augment, Classify, Data, Optim, Recipe

recipe = Recipe(
    name="cifar100",
    task=Classify(label_smoothing=0.1),
    model=dict(variant=None, stem=((64, 1), (128, 2), (128, 1), (256, 2), (256, 1)), patch_size=1, width=256, depth=6,
               num_heads=4, mlp_dim=512, image_size=32, num_classes=100, pooling="gap", stochastic_depth=0.1),
    data=Data(source="tfds:cifar100", train="train[:98%]", validation="train[98%:]", test="test", batch_size=256),
    augment=Augment(crop="padded", crop_padding=4, flip=True, randaugment=2, magnitude=10.0, mixup=0.8, cutmix=1.0,
                    erase=0.25),
    optim=Optim(epochs=200, learning_rate=1e-3, weight_decay=0.05, warmup_epochs=10.0, ema=0.999),
)  # fmt: skip
