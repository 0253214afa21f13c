"""Keras's example "Image classification with Vision Transformer", built from this package's layers, on CIFAR-10.

python benchmarks/keras_example.py --minutes 20 > benchmarks/results/keras_example.json

Images enlarged to 72 pixels, patches of 6, width 256, eight blocks, all tokens flattened into a head of 2048 and 1024
units; AdamW with a constant rate, batches of 256, flips, turns of 7 degrees and changes of size by a fifth: the
example's settings, but for its data, CIFAR-100. It is trained for as many minutes as told, and then measured on the
test set. The example's MLPs have a GELU after both layers, ours after the first.

To compare with a recipe at equal minutes, train both at once on a core each:

taskset -c 0 python benchmarks/keras_example.py --minutes 20
taskset -c 1 python -m keras_vit fit cifar10_quick optim.epochs=4
"""

import argparse
import json
import time

import keras
from checkout import commit

import keras_vit
from keras_vit.utils import machine

SIZE, PATCH, WIDTH, DEPTH, HEADS, UNITS = 72, 6, 256, 8, 4, (2048, 1024)
AUGMENT = {"augment.crop": None, "augment.flip": True, "augment.rotation": 7.2, "augment.scale": 0.2}


def example():
    inputs = keras.Input((SIZE, SIZE, 3))
    x = keras_vit.Patches(PATCH)(keras_vit.Rescale()(inputs))
    x = keras_vit.PatchEncoder(WIDTH, class_token=False)(x)
    for _ in range(DEPTH):
        x = keras_vit.TransformerBlock(HEADS, 2 * WIDTH, dropout=0.1, attention_dropout=0.1)(x)
    x = keras.layers.Flatten()(keras.layers.LayerNormalization(epsilon=1e-6)(x))
    x = keras.layers.Dropout(0.5)(x)
    for units in UNITS:
        x = keras.layers.Dropout(0.5)(keras.layers.Dense(units, activation="gelu")(x))
    return keras.Model(inputs, keras.layers.Dense(10)(x), name="example")


class Until(keras.callbacks.Callback):
    """Ends the training after some minutes, and counts the images."""

    def __init__(self, minutes):
        super().__init__()
        self.end = time.perf_counter() + 60 * minutes
        self.steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        if time.perf_counter() > self.end:
            self.model.stop_training = True


def main(minutes, source):
    changes = {"data.source": source, "model.image_size": SIZE, "data.batch_size": 256, "augment.erase": 0.0, **AUGMENT}
    recipe = keras_vit.load_recipe("cifar10_quick", {**changes, "task.label_smoothing": 0.0, "data.validation": "test"})
    train, test = keras_vit.datasets(recipe)
    model, until = example(), Until(minutes)
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(1e-3, weight_decay=1e-4), loss, metrics=["accuracy"], jit_compile=False)
    began, worked = time.perf_counter(), time.process_time()
    model.fit(train, epochs=1000, callbacks=[until], verbose=0)
    took, worked = (time.perf_counter() - began) / 60, (time.process_time() - worked) / 60
    accuracy = model.evaluate(test, verbose=0, return_dict=True)["accuracy"]
    found = {
        "minutes": round(took, 1),
        "cpu minutes": round(worked, 1),
        "images": until.steps * 256,
        "test accuracy": round(float(accuracy), 4),
    }
    print(
        json.dumps(
            {"example": found, "parameters": model.count_params(), "commit": commit(), **machine.describe()}, indent=2
        )
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--source", default="tfds:cifar10")
    options = parser.parse_args()
    main(options.minutes, options.source)
