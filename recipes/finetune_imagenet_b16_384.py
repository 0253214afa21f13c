"""ImageNet-1k at 384 x 384 with B/16 pre-trained on ImageNet-21k: 20,000 steps of 512 images.

python -m keras_vit fit finetune_imagenet_b16_384 model.dtype=mixed_bfloat16

The settings of google-research/vision_transformer (AugReg): published 85.49 %. SGD without weight decay, gradients of
8 x 64 images clipped at norm 1, a head that starts at zero, a plain resize at evaluation.
"""

from keras_vit.config import Augment, Data, Optim, Recipe

recipe = Recipe(
    name="finetune_imagenet_b16_384",
    model=dict(variant="B/16", weights="augreg-i21k", image_size=384, num_classes=1000),
    data=Data(source="tfds:imagenet2012", train="train[:99%]", validation="train[99%:]", test="validation",
              batch_size=64, antialias=False),  # as in Google's own code
    augment=Augment(crop="inception", flip=True),
    optim=Optim(optimizer="sgd", learning_rate=0.03, weight_decay=0.0,
                epochs=8,  # 20,000 steps
                warmup_epochs=0.2,  # 500 steps
                accumulate=8),  # 8 x 64 = 512 images a step
)  # fmt: skip
