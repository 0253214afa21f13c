"""CIFAR-10 without its labels: a plain ViT of 1.2 million weights learns to reconstruct masked patches.

python -m keras_vit fit cifar10_mae

Masked autoencoders (He et al. 2021, arXiv:2111.06377), with a decoder for small images. `finetune_cifar10_mae`
trains these weights with labels.

Reached an accuracy of 47.68 % by the 20 nearest neighbors of an embedding among 5,000 test images, in 75 minutes on
two CPU cores that also did other work in the first ten. Images are those of a JPEG copy of CIFAR-10.
"""

from keras_vit.config import Augment, Data, Optim, Pretrain, Reached, Recipe, Weights

recipe = Recipe(
    name="cifar10_mae",
    task=Pretrain(decoder_width=96, decoder_depth=1, decoder_heads=3),
    model=dict(variant=None, patch_size=4, width=128, depth=6, num_heads=4, mlp_dim=512, image_size=32, pooling="gap",
               position="sincos2d", num_classes=0),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=256),
    augment=Augment(crop="padded", crop_padding=4, flip=True),
    optim=Optim(epochs=120, learning_rate=1.5e-3, weight_decay=0.05, warmup_epochs=5.0),
    weights=Weights(file="cifar10_mae.keras",
                    sha256="b451fdb4f43f3cf3a2018d49c0a3858ef816d92ad6afde9d33dd0c8a8d0353ad"),
    reached=Reached(scores=(("20-NN accuracy", 0.4768),), minutes=74.9, device="2 CPU cores, x86-64", commit="73a07f2",
                    note="the JPEG copy of CIFAR-10; the cores were partly shared with other work"),
)  # fmt: skip
