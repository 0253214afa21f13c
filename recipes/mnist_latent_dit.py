"""MNIST digits drawn in latents: a diffusion Transformer on the 7 x 7 latents of the autoencoder `mnist_latents`.

python -m keras_vit fit mnist_latent_dit
python -m keras_vit predict runs/mnist_latent_dit --class 7 --count 16 --to drawn
"""

from keras_vit.config import Data, Generate, Optim, Recipe

recipe = Recipe(
    name="mnist_latent_dit",
    task=Generate(autoencoder="mnist_latents", judge="mnist", samples=200, every=2),
    model=dict(variant=None, image_size=7, channels=4, patch_size=1, width=64, depth=3, num_heads=4, num_classes=10),
    data=Data(source="tfds:mnist", train="train[:50000]", validation="train[59000:]", test="test[:1000]",
              batch_size=64),
    optim=Optim(optimizer="muon", epochs=2, learning_rate=1.2e-2, weight_decay=0.0, warmup_epochs=0.1, ema=0.995),
)  # fmt: skip
