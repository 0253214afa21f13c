"""Published models of objects at their sizes, with random weights: milliseconds of an image by each engine.

python benchmarks/objects.py [--only NAME ...] [--turns 5] [--out benchmarks/results/objects.json]

The engines are those of `keras_vit.predictor`: OpenVINO, TFLite and Keras's compiled model, all in float32 with all
cores; and transformers' own model, where torch and transformers are installed, in the same process with all cores.
They take turns; a figure is the median of the turns. The file has a table for each processor: run it on each, and it
adds or replaces that processor's rows, one by one.
"""

import argparse
import json
import pathlib
import statistics
import time

try:  # before TensorFlow: the other way, their copies of LLVM collide
    from timm_alone import import_timm  # isort: skip

    import_timm()
    import object_models
    import torch
except ImportError:
    object_models = None

import keras
import numpy as np
from checkout import about
from engines import processor

import keras_vit
from keras_vit.inference.queries import Queries
from keras_vit.models.map_heads import with_head
from keras_vit.models.open_detector import detection_heads, heads_for, open_detector
from keras_vit.models.query_encoder import query_encoder

TURNS = 5
SLOW = 2000  # milliseconds of an image from which on three turns are enough
CLASSES = 10  # of the detector of fixed classes
SMALL = {"width": 384, "num_heads": 6, "mlp_dim": 1536, "block": {"gelu": "exact", "layer_scale": 1.0}}
DECODER = {
    "kind": "boxes", "normed": True, "kept": None, "masks": None, "units": 91, "queries": 300, "width": 256,
    "num_heads": 8, "cross_heads": 16, "points": 2, "mlp_dim": 2048, "steps": 3, "groups": 1,
    "projector_epsilon": 1e-6, "dropout": 0.0,
}  # fmt: skip
TAPS = (2, 5, 8, 11)


def rf_detr(side, depth):
    tokens = {"class_token": True, "windows": 2, "whole_blocks": (3, 6, 9)}
    sizes = {"image_size": side, "patch_size": 16, "depth": 12, "tokens": tokens}
    encoder = keras_vit.vit(None, **SMALL, **sizes, pooling="none", num_classes=0)
    model = with_head(encoder, {**DECODER, "blocks": TAPS, "depth": depth})
    rng = np.random.default_rng(0)
    for weight in model.weights:  # scores that roundings do not reorder
        if weight.path.endswith("classes/kernel"):
            weight.assign(rng.normal(size=weight.shape))
    return model


def eomt_small():
    tokens = {"class_token": True, "registers": 4, "class_position": False}
    encoder = query_encoder(200, 3, **SMALL, image_size=640, patch_size=16, depth=12, tokens=tokens)
    head = {"kind": "segments", "blocks": (11,), "normed": True, "last": 3, "units": 133, "queries": 200, "upscales": 2}
    return with_head(encoder, {**head, "gelu": "exact", "epsilon": 1e-6})


def owl_base():
    """Returns OWLv2 B/16 with fixed classes: an image tower and heads."""
    image = keras_vit.vit(
        None, image_size=960, patch_size=16, width=768, depth=12, num_heads=12, mlp_dim=3072, pooling="none",
        num_classes=0, tokens={"class_token": True, "pre_norm": True}, block={"gelu": "quick"},
        metadata={"evaluation": {"resize": "pad"}},
    )  # fmt: skip
    text = keras_vit.text_tower(vocabulary=9, length=16, width=8, depth=1, num_heads=1, end=8, projection=512)
    heads = detection_heads(**heads_for(image, text, width=768, units=512, objectness=True))
    names = Queries([f"class {i}" for i in range(CLASSES)], np.random.default_rng(0).normal(size=(CLASSES, 512)))
    return keras_vit.zero_shot_detector(open_detector(image, text, heads), names)


def owl_of_images(model):
    """Returns what transformers' OWLv2 computes of images where the embeddings of the classes are there already."""
    classes = torch.randn((1, CLASSES, 512))

    def seen(pixel_values):
        features = model.image_embedder(pixel_values)[0]
        x = features.flatten(1, 2)
        return model.box_predictor(x, features), model.class_predictor(x, classes), model.objectness_predictor(x)

    return seen


MODELS = {  # ours, and transformers'
    "RF-DETR nano, 384": (lambda: rf_detr(384, 2), lambda: object_models.rf_detr("nano")[0]),
    "RF-DETR small, 512": (lambda: rf_detr(512, 3), lambda: object_models.rf_detr("small")[0]),
    "EoMT small, 640": (eomt_small, lambda: object_models.eomt("small", "panoptic")[0]),
    "OWLv2 B/16, 960": (owl_base, lambda: owl_of_images(object_models.owl("OWLv2 B/16")[0])),
}


def of_transformers(build, image):
    """Returns a function that calls transformers' model with an image, whatever it is called with."""
    model, x = build(), torch.tensor(np.moveaxis(image, -1, 1).copy()) / 255

    def predict(_):
        with torch.inference_mode():
            return model(pixel_values=x)

    return predict


def timed(name, turns):
    """Returns the milliseconds of an image by engine."""
    build, original = MODELS[name]
    model = build()
    image = np.random.default_rng(0).integers(0, 256, (1, *model.input_shape[1:])).astype("float32")
    engines = {engine: keras_vit.predictor(model, engine, batch_size=1) for engine in ("openvino", "tflite", "keras")}
    if object_models:
        engines["transformers"] = of_transformers(original, image)
    for predict in engines.values():
        predict(image)
    found = {engine: [] for engine in engines}
    while len(found["keras"]) < (turns if max(sum(found.values(), [0])) < SLOW else min(turns, 3)):
        for engine, predict in engines.items():
            time.sleep(0.3)  # threads of the engine before still spin
            began = time.perf_counter()
            predict(image)
            found[engine].append(1000 * (time.perf_counter() - began))
    figures = {engine: round(statistics.median(times), 1) for engine, times in found.items()}
    return {"million weights": round(model.count_params() / 1e6, 1), **figures, "turns": len(found["keras"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--out", type=pathlib.Path, default=None)
    options = parser.parse_args()
    packages = ("keras", "tensorflow", "ai-edge-litert", "openvino")
    stated = about(*packages, *(("torch", "transformers") if object_models else ()))
    known = json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
    for name in options.only:
        row = timed(name, options.turns)
        print(name, row, flush=True)
        known.setdefault(processor(), {})[name] = row | {"versions": stated}
        if options.out:
            options.out.write_text(json.dumps(known, indent=2) + "\n")
        keras.utils.clear_session()


if __name__ == "__main__":
    main()
