"""An autoencoder of MNIST digits: 28 x 28 pixels become 7 x 7 latents of 4 channels, for `mnist_latent_dit`.

python -m keras_vit fit mnist_latents
python -m keras_vit fit mnist_latent_dit

PSNR is 28.70 dB on 1,000 validation images, and 28.63 dB on 1,000 test images. One run, one seed.
"""

from keras_vit.config import Augment, Compress, Data, Optim, Reached, Recipe, Weights

recipe = Recipe(
    name="mnist_latents",
    task=Compress(kl=1e-3),
    model=dict(image_size=28, channels=1, latent_channels=4, widths=(8, 16, 32), depth=1, groups=8, attention=False),
    data=Data(source="tfds:mnist", train="train[:20000]", validation="train[59000:]", test="test[:1000]", batch_size=64,
              resize="window"),
    augment=Augment(crop="window"),
    optim=Optim(optimizer="muon", epochs=2, learning_rate=1e-2, weight_decay=0.0, warmup_epochs=0.1, ema=0.99,
                xla=False),
    weights=Weights(file="mnist_latents.keras",
                    sha256="edb16b3dcac757b081d665a634986118c66198d1f3e078017a6af0fc7b2a567d"),
    reached=Reached(scores=(("PSNR on validation", 28.7009),), minutes=11.0, device="1 CPU core, x86-64",
                    commit="06069088", note="other programs shared the core: about a quarter of its time"),
)  # fmt: skip
