"""MNIST digits drawn from noise: a diffusion Transformer of 0.7 M weights on patches of 4 pixels, by rectified flow."""

from keras_vit.config import Data, Generate, Optim, Recipe

recipe = Recipe(
    name="mnist_dit",
    task=Generate(judge="mnist"),
    model=dict(variant=None, image_size=28, channels=1, patch_size=4, width=96, depth=4, num_heads=4, num_classes=10),
    data=Data(source="tfds:mnist", train="train[:55000]", validation="train[55000:]", test="test", batch_size=64),
    optim=Optim(optimizer="muon", epochs=16, learning_rate=1.2e-2, weight_decay=0.0, warmup_epochs=0.1, ema=0.999),
)  # fmt: skip
