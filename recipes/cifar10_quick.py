"""CIFAR-10 in minutes on a CPU: residual convolutions, Muon, and two blocks on 16 tokens.

python -m keras_vit fit cifar10_quick

Reached 86.55 % on the test set of a JPEG copy of CIFAR-10, which is slightly lossy, and 86.4 % on the 1,000 training
images kept for validation. The test set was used once, after the last epoch of a single run. It took 34 minutes on two
CPU cores. `optim.epochs=7` reached 81.35 % in 8.2 minutes, and 80 % after 7.1 (`benchmarks/time_to_accuracy.py`).
"""

from keras_vit.config import Augment, Classify, Data, Optim, Reached, Recipe

recipe = Recipe(
    name="cifar10_quick",
    task=Classify(label_smoothing=0.1),
    model=dict(variant=None, stem=((24, 1), (48, 2, 1), (96, 2, 1), (128, 2)),  # (filters, stride, branch of n)
               patch_size=1, width=128, depth=2, num_heads=4, mlp_dim=256,
               image_size=32, num_classes=10, pooling="gap"),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=128),
    augment=Augment(crop="padded", crop_padding=4, flip=True),
    optim=Optim(optimizer="muon", epochs=30, learning_rate=4e-3, weight_decay=0.05, schedule="linear",
                warmup_epochs=0.5),
    reached=Reached(test_accuracy=0.8655, minutes=34.0, device="2 CPU cores, x86-64", commit="af4146d",
                    note="the JPEG copy of CIFAR-10"),
)  # fmt: skip
