"""CIFAR-10 from B/16 pre-trained on ImageNet-21k, 11 epochs (1,052 steps of 512 images) at 384 x 384.

python -m keras_vit fit finetune_cifar10_b16
python -m keras_vit fit finetune_cifar10_b16 model.weights=my_checkpoint.npz

google-research/vision_transformer's short run, published 98.86 %; it takes a GPU.
SGD without decay, the gradient of 8 x 64 images clipped at 1, the head from zero, a plain resize at evaluation.
"""

from keras_vit.config import Augment, Data, Optim, Recipe

recipe = Recipe(
    name="finetune_cifar10_b16",
    model=dict(variant="B/16", weights="orig-i21k", image_size=384, num_classes=10),
    data=Data(source="tfds:cifar10", train="train[:98%]", validation="train[98%:]", test="test", batch_size=64,
              antialias=False),
    augment=Augment(crop="inception", flip=True),
    optim=Optim(optimizer="sgd", epochs=11, learning_rate=0.01, weight_decay=0.0, warmup_epochs=1.05, accumulate=8),
)  # fmt: skip
