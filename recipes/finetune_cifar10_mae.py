"""CIFAR-10 with labels, from the encoder that `cifar10_mae` trained without them.

python -m keras_vit fit finetune_cifar10_mae
python -m keras_vit fit finetune_cifar10_mae "data.train=train[:10%]" --workdir runs/ten_percent
python -m keras_vit fit finetune_cifar10_mae model.weights=None optim.layer_decay=None --workdir runs/from_scratch

The second command uses a tenth of the labels, the third trains the same model from scratch.
"""

from keras_vit.config import Augment, Classify, Data, Optim, Recipe

recipe = Recipe(
    name="finetune_cifar10_mae",
    task=Classify(label_smoothing=0.1),
    model=dict(variant=None, patch_size=4, width=128, depth=6, num_heads=4, mlp_dim=512, image_size=32, pooling="gap",
               position="sincos2d", num_classes=10, stochastic_depth=0.1, weights="runs/cifar10_mae"),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=128),
    augment=Augment(crop="padded", crop_padding=4, flip=True, mixup=0.8, cutmix=1.0, erase=0.25),
    optim=Optim(epochs=30, learning_rate=1e-3, weight_decay=0.05, warmup_epochs=3.0, layer_decay=0.75),
)  # fmt: skip
