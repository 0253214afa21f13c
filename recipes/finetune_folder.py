"""Your own pictures, one folder for each class, with S/16 pre-trained on ImageNet-21k; classes may differ in size.

python -m keras_vit fit finetune_folder data.source=folder:pictures
python -m keras_vit fit finetune_folder data.source=folder:isic "task.metrics=('accuracy', 'partial_auc')"

Rare classes get a larger weight in the loss. Lower blocks learn more slowly (Bao et al. 2022, arXiv:2106.08254).
`partial_auc` is for two classes such as benign and malignant, where the second must be found. It is the metric of the
ISIC 2024 challenge: the area under the ROC curve above a sensitivity of 80 %, 0.2 at best.
"""

from keras_vit.config import Augment, Classify, Data, Optim, Recipe

recipe = Recipe(
    name="finetune_folder",
    task=Classify(label_smoothing=0.1, class_weights=True, metrics=("accuracy", "balanced_accuracy")),
    model=dict(variant="S/16", weights="augreg-i21k", image_size=224),
    data=Data(source="folder:pictures", train="all[:80%]", validation="all[80%:90%]", test="all[90%:]", batch_size=32,
              resize=256),  # evaluation: shorter side to 256 pixels, then the central 224
    augment=Augment(crop="inception", crop_area=0.3, flip=True, jitter=0.2),  # crops keep 30 % of the area; default 5 %
    optim=Optim(epochs=20, learning_rate=5e-4, weight_decay=0.05, warmup_epochs=2.0,
                layer_decay=0.75),  # each block learns at 0.75 times the rate of the block above
)  # fmt: skip
