"""CIFAR-10 images drawn from noise: a diffusion Transformer of 33 million weights on patches of 2 pixels, for a GPU.

python -m keras_vit fit cifar10_dit

About 6 GMACs per image and step, 500 epochs. On a CPU, see `mnist_dit`.
"""

from keras_vit.config import Augment, Data, Generate, Optim, Recipe

recipe = Recipe(
    name="cifar10_dit",
    task=Generate(judge="cifar10_hybrid", every=50, samples=1000),
    model=dict(variant="S/2", image_size=32, channels=3, num_classes=10),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=256),
    augment=Augment(flip=True),
    optim=Optim(epochs=500, learning_rate=4e-4, weight_decay=0.0, schedule="constant", warmup_epochs=5.0, ema=0.9999),
)  # fmt: skip
