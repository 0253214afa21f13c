"""CIFAR-10 without its labels: the ViT of `cifar10_mae`, with patches of 8 pixels, learns by self-distillation.

python -m keras_vit fit cifar10_dino

A student says of crops of an image what a teacher, an average of its own weights, says of two large ones (Caron et al.
2021, arXiv:2104.14294). These settings are for minutes of a core, not for good features: see `docs/tasks/pretrain.md`.

Reached an accuracy of 27.72 % by the 20 nearest neighbors of an embedding among 5,000 test images, in 19 minutes of a
quarter of a CPU core (4.8 minutes of one). That is no more than random weights have, 28.08 %; a masked autoencoder of
the same encoder and minutes reached 35.22 %. Images are those of a JPEG copy of CIFAR-10.
"""

from keras_vit.config import Augment, Data, Optim, Pretrain, Reached, Recipe

recipe = Recipe(
    name="cifar10_dino",
    task=Pretrain(method="dino", prototypes=1024, head_width=512, local_crops=4, teacher_temperature=0.04,
                  teacher_momentum=0.98, frozen_epochs=0.25),
    model=dict(variant=None, patch_size=8, width=128, depth=6, num_heads=4, mlp_dim=512, image_size=32, pooling="gap",
               position="sincos2d", num_classes=0),
    data=Data(source="tfds:cifar10", train="train[:20%]", validation="train[98%:]", test="test", batch_size=64),
    augment=Augment(flip=True),
    optim=Optim(epochs=3, learning_rate=1e-3, weight_decay=0.05, warmup_epochs=0.5),
    reached=Reached(scores=(("20-NN accuracy", 0.2772),), minutes=19.5, device="a quarter of a CPU core, x86-64",
                    commit="69f60c80", note="the JPEG copy of CIFAR-10; random weights have 28.08 %; a shared core"),
)  # fmt: skip
