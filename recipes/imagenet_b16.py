"""ImageNet-1k from scratch: B/16 in 300 epochs, with strong augmentation and regularization.

python -m keras_vit fit imagenet_b16 model.dtype=mixed_bfloat16

big_vision's `vit_i1k.py`, the settings of "How to train your ViT?" (Steiner et al. 2022, arXiv:2106.10270). The loss is
one sigmoid for each class. The batch of 4096 is `data.batch_size` times `optim.accumulate`.
"""

from keras_vit.config import Augment, Classify, Data, Optim, Recipe

recipe = Recipe(
    name="imagenet_b16",
    task=Classify(loss="sigmoid", head_bias=-6.9),  # -log(1000): each sigmoid starts at 1/1000
    model=dict(variant="B/16", image_size=224, num_classes=1000, representation_size=True),
    data=Data(source="tfds:imagenet2012", train="train[:99%]", validation="train[99%:]", test="validation",
              batch_size=1024, resize=256, method="area", antialias=False),  # evaluation as in big_vision
    augment=Augment.level("medium2", crop="inception", flip=True),  # RandAugment (2, 15), MixUp 0.5
    optim=Optim(epochs=300, learning_rate=1e-3,
                weight_decay=0.1,  # times the rate of 1e-3: 1e-4 a step, as in big_vision
                warmup_epochs=32.3,  # 10,000 steps
                accumulate=4),  # 4 x 1024 = 4096 images a step
)  # fmt: skip
