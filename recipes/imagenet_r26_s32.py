"""ImageNet-1k from scratch: the hybrid R26+S/32 in 300 epochs.

python -m keras_vit fit imagenet_r26_s32 model.dtype=mixed_bfloat16

The settings of `imagenet_b16`. The model needs three quarters of the multiply-adds of S/16, and is more accurate than
S/16 after pre-training on more data (Steiner et al. 2022, arXiv:2106.10270, table 3).
"""

from keras_vit.config import Augment, Classify, Data, Optim, Recipe

recipe = Recipe(
    name="imagenet_r26_s32",
    task=Classify(loss="sigmoid", head_bias=-6.9),  # -log(1000): each sigmoid starts at 1/1000
    model=dict(variant="R26+S/32", image_size=224, num_classes=1000, representation_size=True),
    data=Data(source="tfds:imagenet2012", train="train[:99%]", validation="train[99%:]", test="validation",
              batch_size=1024, resize=256, method="area", antialias=False),  # evaluation as in big_vision
    augment=Augment.level("medium2", crop="inception", flip=True),  # RandAugment (2, 15), MixUp 0.5
    optim=Optim(epochs=300, learning_rate=1e-3,
                weight_decay=0.1,  # times the rate of 1e-3: 1e-4 a step, as in big_vision
                warmup_epochs=32.3,  # 10,000 steps
                accumulate=4),  # 4 x 1024 = 4096 images a step
)  # fmt: skip
