"""CIFAR-10 in minutes on a CPU: residual convolutions, Muon, and two blocks on 16 tokens.

python -m keras_vit fit cifar10_quick
"""

from keras_vit.config import Augment, Classify, Data, Optim, Recipe

recipe = Recipe(
    name="cifar10_quick",
    task=Classify(label_smoothing=0.1),
    model=dict(variant=None, stem=((24, 1), (48, 2, 1), (96, 2, 1), (128, 2)),  # (filters, stride, residual branch)
               patch_size=1, width=128, depth=2, num_heads=4, mlp_dim=256,
               image_size=32, num_classes=10, pooling="gap"),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=128),
    augment=Augment(crop="padded", crop_padding=4, flip=True),
    optim=Optim(optimizer="muon", epochs=6, learning_rate=4e-3, weight_decay=0.05, schedule="linear",
                warmup_epochs=0.5),
)  # fmt: skip
