"""Your own pictures, in one folder a class, from S/16 pre-trained on ImageNet-21k; for classes of unequal size.

python -m keras_vit fit finetune_folder data.source=folder:pictures model.num_classes=5
python -m keras_vit fit finetune_folder data.source=folder:isic "metrics=('accuracy', 'partial_auc')"

A class counts the more, the rarer it is. With two classes such as benign and malignant, of which the second is to be
found, `partial_auc` is the metric of the ISIC 2024 challenge: the area above a sensitivity of 80 %, 0.2 at best.
Lower blocks learn more slowly (Bao et al. 2022, arXiv:2106.08254).
"""

from keras_vit.config import Augment, Data, Optim, Recipe

recipe = Recipe(
    name="finetune_folder",
    model=dict(variant="S/16", weights="augreg-i21k", image_size=224, num_classes=2),
    data=Data(source="folder:pictures", train="all[:80%]", validation="all[80%:90%]", test="all[90%:]", batch_size=32,
              resize=256),
    augment=Augment(crop="inception", crop_area=0.3, flip=True, jitter=0.2),
    optim=Optim(epochs=20, learning_rate=5e-4, weight_decay=0.05, warmup_epochs=2.0, layer_decay=0.75,
                label_smoothing=0.1, class_weights=True),
    metrics=("accuracy", "balanced_accuracy"),
)  # fmt: skip
