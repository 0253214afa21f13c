"""CIFAR-10 without its labels: a plain ViT of 1.2 million weights learns to paint masked patches.

python -m keras_vit fit cifar10_mae
python -m keras_vit fit finetune_cifar10_mae

Masked autoencoders (He et al. 2021, arXiv:2111.06377), with a decoder for small images. On a GPU's budget such
pre-training takes plain ViTs to 96.4 % on CIFAR-10 (arXiv:2402.03752).
"""

from keras_vit.config import Augment, Data, Optim, Pretrain, Recipe

recipe = Recipe(
    name="cifar10_mae",
    task=Pretrain(decoder_width=96, decoder_depth=2, decoder_heads=3),
    model=dict(variant=None, patch_size=4, width=128, depth=6, num_heads=4, mlp_dim=512, image_size=32, pooling="gap",
               position="sincos2d", num_classes=0),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=256),
    augment=Augment(crop="padded", crop_padding=4, flip=True),
    optim=Optim(epochs=150, learning_rate=1.5e-3, weight_decay=0.05, warmup_epochs=5.0),
)  # fmt: skip
