"""Compares classifiers and backbones of KerasHub with what is read of the presets that they save: random weights.

python benchmarks/keras_hub_against_originals.py

It needs keras-hub, and writes `results/keras_hub_against_originals.json`: answers to photographs' sizes, prepared by
KerasHub's own converters. `--golden FOLDER` writes the small presets of the tests with KerasHub's answers instead.
"""

import argparse
import json
import pathlib
import tempfile

import keras_hub
import numpy as np
from checkout import about

import keras_vit

RESULTS = pathlib.Path(__file__).parent / "results" / "keras_hub_against_originals.json"
VIT = dict(num_layers=2, num_heads=6, hidden_dim=384, mlp_dim=1536)
DEIT = dict(num_layers=2, num_heads=6, hidden_dim=384, intermediate_dim=1536)
DINO = dict(patch_size=14, num_layers=2, num_heads=6, hidden_dim=384, intermediate_dim=1536)
HALF = dict(scale=1 / 127.5, offset=-1)
IMAGENET = dict(scale=[1 / 255 / s for s in (0.229, 0.224, 0.225)], offset=[-2.118, -2.036, -1.804])
PLAIN = dict(use_class_token=False, use_patch_bias=False, use_mha_bias=False, use_mlp_bias=False)
CUBIC = dict(interpolation="bicubic", antialias=True)
SIZES = ((300, 420), (420, 300), (224, 224))  # of images
# Family, size of images, the backbone's options, the classifier's (`None` of a backbone alone), the converter's.
CASES = {
    "ViT": ("ViT", (224, 224), dict(patch_size=16, **VIT), dict(num_classes=1000), HALF),
    "ViT, 224 x 320, softmax": ("ViT", (224, 320), dict(patch_size=16, **VIT),
                                dict(num_classes=10, activation="softmax"), IMAGENET),
    "ViT, representation layer": ("ViT", (224, 224), dict(patch_size=32, **VIT),
                                  dict(num_classes=10, intermediate_dim=384, dropout=0.1), HALF),
    "ViT, average, no biases": ("ViT", (224, 224), dict(patch_size=16, **VIT, **PLAIN),
                                dict(num_classes=10, pooling="gap"), HALF),
    "ViT, bfloat16, bicubic": ("ViT", (224, 224), dict(patch_size=16, dtype="bfloat16", **VIT),
                               dict(num_classes=10), {**HALF, "interpolation": "bicubic"}),
    "ViT, float16, squashed": ("ViT", (224, 224), dict(patch_size=16, dtype="float16", **VIT),
                               dict(num_classes=10, activation="sigmoid"), {**HALF, "crop_to_aspect_ratio": False}),
    "DeiT": ("DeiT", (224, 224), dict(patch_size=16, **DEIT), dict(num_classes=1000), {**IMAGENET, **CUBIC}),
    "DeiT, 160 x 256, no biases": ("DeiT", (160, 256), dict(patch_size=(16, 32), use_mha_bias=False, **DEIT),
                                   dict(num_classes=2, activation="softmax"), {**HALF, "antialias": True}),
    "DINOv2": ("DINOV2", (224, 224), DINO, None, {**IMAGENET, **CUBIC}),
    "DINOv2, registers": ("DINOV2", (224, 224),
                          dict(num_register_tokens=4, antialias_in_interpolation=True, **DINO), None, IMAGENET),
    "DINOv2, gated": ("DINOV2", (224, 224), dict(use_swiglu_ffn=True, use_mask_token=False, **DINO), None, IMAGENET),
}  # fmt: skip
SMALL = dict(num_layers=1, num_heads=2, hidden_dim=8)
GOLDEN = {
    "vit": ("ViT", (8, 12), dict(patch_size=4, mlp_dim=12, **SMALL),
            dict(num_classes=3, intermediate_dim=6, activation="softmax"), IMAGENET),
    "vit_plain": ("ViT", (8, 8), dict(patch_size=4, mlp_dim=12, dtype="bfloat16", **SMALL, **PLAIN),
                  dict(num_classes=2, pooling="gap"), {**HALF, "crop_to_aspect_ratio": False}),
    "deit": ("DeiT", (8, 12), dict(patch_size=4, intermediate_dim=12, **(SMALL | {"num_layers": 2})),
             dict(num_classes=3, activation="sigmoid"), {**IMAGENET, **CUBIC}),
    "dinov2": ("DINOV2", (8, 8), dict(patch_size=4, intermediate_dim=12, num_register_tokens=2,
                                      position_embedding_shape=(12, 12), **SMALL),
               None, {**HALF, "interpolation": "bicubic"}),
}  # fmt: skip


def randomize(model, spread=0.02):
    """Gives every weight random numbers near what training leaves, so that nothing passes by being zero."""
    rng = np.random.default_rng(0)
    for variable in model.weights:
        noise = rng.normal(size=variable.shape)
        variable.assign(1 + 0.1 * noise if variable.path.endswith(("gamma", "lambda1")) else spread * noise)
    return model


def save(family, size, backbone, task, converter, folder, spread=0.02):
    """Saves a preset with random weights."""
    models, layers = keras_hub.models, keras_hub.layers
    own = getattr(layers, f"{family}ImageConverter")(image_size=size, **converter)
    body = getattr(models, f"{family}Backbone")(image_shape=(*size, 3), **backbone)
    if task is None:
        randomize(body, spread).save_to_preset(folder)
        own.save_to_preset(folder)
        return
    preprocessor = getattr(models, f"{family}ImageClassifierPreprocessor")(image_converter=own)
    randomize(getattr(models, f"{family}ImageClassifier")(body, preprocessor=preprocessor, **task)).save_to_preset(
        folder
    )


def answers(folder, task, images):
    """Returns what KerasHub answers of a preset to images, float32 so that nothing is rounded to bytes."""
    if task is not None:
        return keras_hub.models.ImageClassifier.from_preset(folder).predict(images, verbose=0)
    prepared = keras_hub.layers.ImageConverter.from_preset(folder)(images)
    return keras_hub.models.Backbone.from_preset(folder).predict({"images": np.asarray(prepared)}, verbose=0)[:, 0]


def ours(folder, task, images):
    """Returns what is read of a preset answers to the same images: logits, after the head's activation."""
    model = keras_vit.from_pretrained(folder)
    logits = model.predict(keras_vit.preprocess(model, [*images]), verbose=0)
    kind = (task or {}).get("activation")
    if kind == "softmax":
        powers = np.exp(logits - logits.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)
    return 1 / (1 + np.exp(-logits)) if kind == "sigmoid" else logits


def case(family, size, backbone, task, converter):
    rng, differences, largest = np.random.default_rng(1), [], 0
    with tempfile.TemporaryDirectory() as folder:
        save(family, size, backbone, task, converter, folder)
        for shape in SIZES:
            images = rng.integers(0, 256, (2, *shape, 3)).astype("float32")
            theirs = answers(folder, task, images)
            differences.append(float(np.abs(ours(folder, task, images) - theirs).max()))
            largest = max(largest, float(np.abs(theirs).max()))
    return {"max_abs_diff": max(differences), "max_abs_answer": largest}


def golden(folder):
    for name, (family, size, backbone, task, converter) in GOLDEN.items():
        path = folder / name
        save(family, size, backbone, task, converter, str(path), spread=0.2)  # of few channels
        images = np.random.default_rng(1).integers(0, 256, (2, 15, 14, 3)).astype("uint8")
        np.savez(path / "io.npz", images=images, answers=answers(str(path), task, images.astype("float32")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--golden", type=pathlib.Path)
    if folder := parser.parse_args().golden:
        return golden(folder)
    rows = {name: case(*settings) for name, settings in CASES.items()}
    RESULTS.write_text(
        json.dumps({**about("keras"), "keras-hub": keras_hub.__version__, "cases": rows}, indent=2) + "\n"
    )
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
