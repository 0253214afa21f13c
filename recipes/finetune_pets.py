"""Oxford-IIIT Pet, 37 breeds, with B/32 pre-trained on ImageNet-21k: 500 steps of 512 images at 384 x 384.

python -m keras_vit fit finetune_pets
python -m keras_vit fit finetune_pets model.variant=S/16 model.weights=augreg-i21k

big_vision's `transfer.py`: published 93.78 % (mean of five runs).
"""

from keras_vit.config import Augment, Data, Optim, Recipe

AUGREG = "https://storage.googleapis.com/vit_models/augreg/"
AUGREG += "B_32-i21k-300ep-lr_0.001-aug_light1-wd_0.1-do_0.0-sd_0.0.npz"

recipe = Recipe(
    name="finetune_pets",
    model=dict(variant="B/32", weights=AUGREG, image_size=384, num_classes=37),
    data=Data(source="tfds:oxford_iiit_pet", train="train[:90%]", validation="train[90%:]", test="test", batch_size=64,
              resize=448, method="area", antialias=False),  # then the central 384: as in big_vision
    augment=Augment(crop="inception", flip=True),
    optim=Optim(optimizer="sgd", learning_rate=0.003, weight_decay=0.0,
                epochs=78,  # 3,312 images are 6.4 steps an epoch
                warmup_epochs=15.6,  # 100 steps
                accumulate=8),  # 8 x 64 = 512 images a step
)  # fmt: skip
