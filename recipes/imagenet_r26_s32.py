"""ImageNet-1k from scratch, the hybrid R26+S/32 in 300 epochs.

python -m keras_vit fit imagenet_r26_s32 model.dtype=mixed_bfloat16

The settings of `imagenet_b16`; three quarters of the multiply-adds of S/16, and a higher accuracy when pre-trained
on more (Steiner et
al. 2022, arXiv:2106.10270, table 3).
"""

from keras_vit.config import Augment, Data, Optim, Recipe

recipe = Recipe(
    name="imagenet_r26_s32",
    model=dict(variant="R26+S/32", image_size=224, num_classes=1000, representation_size=True),
    data=Data(source="tfds:imagenet2012", train="train[:99%]", validation="train[99%:]", test="validation",
              batch_size=1024, resize=256, method="area", antialias=False),
    augment=Augment.level("medium2", crop="inception", flip=True),
    optim=Optim(epochs=300, learning_rate=1e-3, weight_decay=0.1, warmup_epochs=32.3, accumulate=4, loss="sigmoid",
                head_bias=-6.9),
)  # fmt: skip
