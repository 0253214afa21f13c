"""MNIST digits drawn in latents: a diffusion Transformer on the 7 x 7 latents of the autoencoder `mnist_latents`.

python -m keras_vit predict mnist_latent_dit --class 7 --count 16 --to drawn
python -m keras_vit fit mnist_latent_dit

The first command draws with the shipped weights. Of 200 digits, guidance 2 and 25 steps, the shipped `mnist` classifier
reads 99.5 % as the digit that was asked for. One run, one seed.
"""

from keras_vit.config import Data, Generate, Optim, Reached, Recipe, Weights

recipe = Recipe(
    name="mnist_latent_dit",
    task=Generate(autoencoder="mnist_latents", judge="mnist", samples=200, every=2),
    model=dict(variant=None, image_size=7, channels=4, patch_size=1, width=64, depth=3, num_heads=4, num_classes=10),
    data=Data(source="tfds:mnist", train="train[:50000]", validation="train[59000:]", test="test[:1000]",
              batch_size=64),
    optim=Optim(optimizer="muon", epochs=2, learning_rate=1.2e-2, weight_decay=0.0, warmup_epochs=0.1, ema=0.995),
    weights=Weights(file="mnist_latent_dit.keras",
                    sha256="40e7a787df5ff96437784f49d6e512bc50e03afe320cf66e628370b276cc9481"),
    reached=Reached(scores=(("accuracy of drawn digits", 0.995),), minutes=17.0, commit="00b1381f",
                    device="1 CPU core, x86-64", note="other programs shared the core: about a quarter of its time"),
)  # fmt: skip
