"""CIFAR-10 with B/16 pre-trained on ImageNet-21k: 11 epochs (1,052 steps of 512 images) at 384 x 384.

python -m keras_vit fit finetune_cifar10_b16
python -m keras_vit fit finetune_cifar10_b16 model.weights=my_checkpoint.npz

The short run of google-research/vision_transformer: published 98.86 %. Needs a GPU. SGD without weight decay, gradients
of 8 x 64 images clipped at norm 1, a head that starts at zero, a plain resize at evaluation.
"""

from keras_vit.config import Augment, Data, Optim, Recipe

recipe = Recipe(
    name="finetune_cifar10_b16",
    model=dict(variant="B/16", weights="orig-i21k", image_size=384, num_classes=10),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=64,
              antialias=False),  # as in Google's own code
    augment=Augment(crop="inception", flip=True),
    optim=Optim(optimizer="sgd", epochs=11, learning_rate=0.01, weight_decay=0.0,
                warmup_epochs=1.05,  # 100 steps
                accumulate=8),  # 8 x 64 = 512 images a step
)  # fmt: skip
