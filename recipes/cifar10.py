"""CIFAR-10 from scratch: a plain ViT with patches of 4 pixels, for a GPU.

python -m keras_vit fit cifar10

About 0.6 GMACs per image, 300 epochs. On a CPU, use `cifar10_hybrid`.
"""

from keras_vit.config import Augment, Classify, Data, Optim, Recipe

recipe = Recipe(
    name="cifar10",
    task=Classify(label_smoothing=0.1),
    model=dict(variant=None, patch_size=4, width=384, depth=7, num_heads=6, mlp_dim=768, image_size=32, num_classes=10,
               pooling="gap", stochastic_depth=0.1),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=256),
    augment=Augment(crop="padded", crop_padding=4, flip=True, randaugment=2, magnitude=10.0, mixup=0.8, cutmix=1.0,
                    erase=0.25),
    optim=Optim(epochs=300, learning_rate=1e-3, weight_decay=0.05, warmup_epochs=10.0, ema=0.999),
)  # fmt: skip
