"""ImageNet-1k at 384 x 384 from B/16 pre-trained on ImageNet-21k, 20,000 steps of 512 images.

python -m keras_vit fit finetune_imagenet_b16_384 model.dtype=mixed_bfloat16

google-research/vision_transformer's setting (AugReg), published 85.49 %: SGD without decay, 500 warm-up steps, the
gradient of 8 x 64 images clipped at 1, the head from zero, a plain resize at evaluation.
"""

from keras_vit.config import Augment, Data, Optim, Recipe

recipe = Recipe(
    name="finetune_imagenet_b16_384",
    model=dict(variant="B/16", weights="augreg-i21k", image_size=384, num_classes=1000),
    data=Data(source="tfds:imagenet2012", train="train[:99%]", validation="train[99%:]", test="validation",
              batch_size=64, antialias=False),
    augment=Augment(crop="inception", flip=True),
    optim=Optim(optimizer="sgd", epochs=8, learning_rate=0.03, weight_decay=0.0, warmup_epochs=0.2, accumulate=8),
)  # fmt: skip
