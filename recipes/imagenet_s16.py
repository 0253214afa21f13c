"""ImageNet-1k from scratch: S/16 in 90 epochs, the better plain ViT baseline.

python -m keras_vit fit imagenet_s16 model.dtype=mixed_bfloat16

big_vision's `vit_s16_i1k.py` (Beyer et al. 2022, arXiv:2205.01580): published 76.5 % on the validation set after 6 to 7
hours on a TPUv3-8.
"""

from keras_vit.config import Augment, Data, Optim, Recipe

recipe = Recipe(
    name="imagenet_s16",
    model=dict(variant="S/16", image_size=224, num_classes=1000, pooling="gap", position="sincos2d",
               representation_size=True),
    data=Data(source="tfds:imagenet2012", train="train[:99%]", validation="train[99%:]", test="validation",
              batch_size=1024, resize=256, method="area", antialias=False),  # evaluation as in big_vision
    augment=Augment.level("light2", crop="inception", flip=True),  # RandAugment (2, 10), MixUp 0.2
    optim=Optim(epochs=90, learning_rate=1e-3,
                weight_decay=0.1,  # times the rate of 1e-3: 1e-4 a step, as in big_vision
                warmup_epochs=8.07),  # 10,000 steps
)  # fmt: skip
