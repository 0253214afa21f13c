"""Published models of objects at their sizes, with random weights: milliseconds of an image by each engine.

python benchmarks/objects.py [--only NAME ...] [--out benchmarks/results/objects.json]

The engines are those of `keras_vit.predictor`: OpenVINO, TFLite and Keras's compiled model, all in float32 with all
cores. They take turns; a figure is the median of the turns. The file has a table for each processor: run it on each,
and it adds or replaces that processor's.
"""

import argparse
import json
import pathlib
import statistics
import time

import numpy as np
from engines import processor

import keras_vit
from keras_vit.models.map_heads import with_head
from keras_vit.models.query_encoder import query_encoder

TURNS = 7
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
    return with_head(encoder, {**DECODER, "blocks": TAPS, "depth": depth})


def eomt_small():
    tokens = {"class_token": True, "registers": 4, "class_position": False}
    encoder = query_encoder(200, 4, **SMALL, image_size=640, patch_size=16, depth=12, tokens=tokens)
    head = {"kind": "segments", "blocks": (11,), "normed": True, "last": 4, "units": 133, "queries": 200, "upscales": 2}
    return with_head(encoder, {**head, "gelu": "exact", "epsilon": 1e-6})


MODELS = {
    "RF-DETR nano, 384": lambda: rf_detr(384, 2),
    "RF-DETR small, 512": lambda: rf_detr(512, 3),
    "EoMT small, 640": eomt_small,
}


def timed(name, turns):
    """Returns the milliseconds of an image by engine."""
    model = MODELS[name]()
    image = np.random.default_rng(0).integers(0, 256, (1, *model.input_shape[1:])).astype("float32")
    engines = {engine: keras_vit.predictor(model, engine=engine) for engine in ("openvino", "tflite", "keras")}
    found = {engine: [] for engine in engines}
    for turn in range(turns + 1):
        for engine, predict in engines.items():
            time.sleep(0.3)  # threads of the engine before still spin
            began = time.perf_counter()
            predict(image)
            found[engine] += [1000 * (time.perf_counter() - began)] if turn else []
    figures = {engine: round(statistics.median(times), 1) for engine, times in found.items()}
    return {"million weights": round(model.count_params() / 1e6, 1), **figures}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(MODELS))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--out", type=pathlib.Path, default=None)
    options = parser.parse_args()
    rows = {name: timed(name, options.turns) for name in options.only}
    print(json.dumps({processor(): rows}, indent=2))
    if options.out:
        known = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.write_text(json.dumps({**known, processor(): rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
