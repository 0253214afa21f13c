"""scikit-learn's 1,797 handwritten digits, 8 x 8 pixels, which need no network."""

from keras_vit.config import Augment, Data, Optim, Recipe

recipe = Recipe(
    name="digits",
    model=dict(variant=None, patch_size=2, width=64, depth=4, num_heads=4, mlp_dim=128, image_size=8, channels=1,
               num_classes=10, pooling="gap", stochastic_depth=0.05),
    data=Data(source="digits", train="all[:70%]", validation="all[70%:80%]", test="all[80%:]", batch_size=32),
    augment=Augment(rotation=10.0, scale=0.1, shear=0.1, translation=0.08),
    optim=Optim(epochs=120, learning_rate=2e-3, weight_decay=0.05, warmup_epochs=3.0, label_smoothing=0.1),
)  # fmt: skip
