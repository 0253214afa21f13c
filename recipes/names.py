from keras_vit.config import Data, Optim, Recipe, Translate

recipe = Recipe(
    name="names",
    task=Translate(length=52, letters=True, vocabulary=96, every=6, label_smoothing=0.1,
                   text=dict(width=128, depth=2, num_heads=4, mlp_dim=256, dropout=0.3)),
    model=dict(width=128, depth=2, num_heads=4, mlp_dim=256, dropout=0.3),
    data=Data(source="table:names.csv", columns={"sources": "german", "texts": "english"}, train="all[:80%]",
              validation="all[80%:90%]", test="all[90%:]", batch_size=32),
    optim=Optim(optimizer="muon", epochs=24, learning_rate=4e-3, weight_decay=0.05, warmup_epochs=1.0),
)  # fmt: skip
