"""Every export format beside the others, KerasHub's graph, ONNX Runtime and Keras: time, size, accuracy.

python benchmarks/export.py > benchmarks/results/export.json

Needs keras-hub beside the extras `quantize` and `onnx`; TFDS_DATA_DIR with MNIST and CIFAR-10. Latency is of one image
of 224 x 224, on one thread and on two, medians of calls that alternate between all files of one size; weights are
random, and so is KerasHub's, exported by TensorFlow's converter with static shapes as ours is. Accuracy is that of the
models that ship with the package, on the whole test sets; calibration is 256 training images.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf
from checkout import commit

import keras_vit
from keras_vit.export import runtimes
from keras_vit.runs.results import some_images
from keras_vit.utils.keras_private import tflite_operators

HUB = {"Ti/16": (12, 3, 192), "S/16": (12, 6, 384), "B/16": (12, 12, 768)}
FORMATS = (None, "float16", "dynamic", "int8")
SHIPPED = ("mnist", "cifar10_hybrid")


def ours(variant, folder, images):
    """Exports a model of random weights in each format; returns the paths by name, and reports."""
    keras.utils.set_random_seed(0)
    model = keras_vit.vit(variant, num_classes=1000)
    head = model.get_layer("head").kernel
    head.assign(np.random.default_rng(0).normal(size=head.shape) * 0.05)
    paths, reports = {}, {}
    for quantize in FORMATS:
        name = quantize or "float32"
        paths[name] = folder / f"{name}.tflite"
        given = {"calibration": images} if quantize == "int8" else {"images": images[:4]}
        reports[name] = keras_vit.export_tflite(model, paths[name], quantize=quantize, **given)
        print(reports[name], file=sys.stderr)
    keras_vit.export_onnx(model, folder / "model.onnx", images=images[:4])
    return model, paths, reports


def hub(variant, folder):
    """Exports KerasHub's model of that size in float32 and dynamic; returns the paths by name."""
    import keras_hub

    depth, heads, width = HUB[variant]
    backbone = keras_hub.models.ViTBackbone(
        image_shape=(224, 224, 3), patch_size=16, num_layers=depth, num_heads=heads, hidden_dim=width, mlp_dim=4 * width
    )
    model = keras.Model(backbone.inputs, keras.layers.Dense(1000)(backbone.outputs[0][:, 0]))
    name = model.inputs[0].name

    def serve(images):
        return {"logits": model({name: images} if isinstance(model.input, dict) else images, training=False)}

    paths = {}
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", serve, input_signature=[tf.TensorSpec((1, 224, 224, 3), "float32", name="images")])
    archive.write_out(str(folder / "hub"), verbose=False)
    for kind in ("float32", "dynamic"):
        converter = tf.lite.TFLiteConverter.from_saved_model(str(folder / "hub"), signature_keys=["serve"])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        converter.optimizations = [tf.lite.Optimize.DEFAULT] if kind == "dynamic" else []
        paths[f"KerasHub {kind}"] = folder / f"hub-{kind}.tflite"
        paths[f"KerasHub {kind}"].write_bytes(converter.convert())
    return paths


def onnx_runtime(path, image, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {session.get_inputs()[0].name: image})


def alternate(runs, rounds, each=3):
    """Returns the median milliseconds of each function; they take turns."""
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            run()
            for _ in range(each):
                start = time.perf_counter()
                run()
                times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def latency(variant, rounds):
    images = np.random.default_rng(0).integers(0, 256, (32, 224, 224, 3)).astype("float32")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model, paths, reports = ours(variant, folder, images)
        paths |= hub(variant, folder)
        compiled = tf.function(lambda x: model(x, training=False), jit_compile=True)
        rows = {name: {"bytes": path.stat().st_size, "ms": {}} for name, path in paths.items()}
        rows |= {"ONNX Runtime": {"bytes": (folder / "model.onnx").stat().st_size, "ms": {}}, "Keras, XLA": {"ms": {}}}
        for threads in (1, 2):
            runs = {name: runtimes.opened(path, threads).invoke for name, path in paths.items()}
            runs["ONNX Runtime"] = onnx_runtime(folder / "model.onnx", images[:1], threads)
            if threads == 2:
                runs["Keras, XLA"] = lambda: compiled(images[:1]).numpy()
            for name, ms in alternate(runs, rounds).items():
                rows[name]["ms"][str(threads)] = round(ms, 3)
        for name, report in reports.items():
            rows[name] |= {
                "partitions": report.partitions,
                "largest_difference_of_range": report.max_abs_diff / report.range,
                "bytes_per_weight": report.bytes / model.count_params(),
                "memory_mb": report.memory_mb,
            }
        for name in ("KerasHub float32", "KerasHub dynamic"):
            details = tflite_operators(runtimes.opened(paths[name], 1))
            rows[name]["partitions"] = sum(op["op_name"] == "DELEGATE" for op in details)
    return rows


def accuracy(name):
    trained = keras_vit.load_run(name)
    model, recipe = trained.model, trained.recipe
    examples = some_images(trained, recipe.data.test, None)
    images, classes = examples["images"], examples["labels"]
    calibration = some_images(trained, recipe.data.train, 256)["images"]
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        cases = [(quantize, "cpu") for quantize in FORMATS] + [("int8", "integer"), ("int16x8", "cpu")]
        for quantize, target in cases:
            kind = (quantize or "float32") + (" integer" if target == "integer" else "")
            given = {"calibration": calibration} if quantize in ("int8", "int16x8") else {}
            limit = 1000 if quantize == "int16x8" else None  # reference kernels: slow
            report = keras_vit.export_tflite(
                model, f"{folder}/{kind}.tflite", quantize=quantize, target=target, images=images[:limit],
                classes=classes[:limit], **given,
            )  # fmt: skip
            print(report, file=sys.stderr)
            rows[kind] = {
                "accuracy": report.accuracy,
                "agreement": report.agreement,
                "images": report.images,
                "bytes": report.bytes,
                "ms": report.ms,
                "partitions": report.partitions,
                "largest_difference_of_range": report.max_abs_diff / report.range,
                "memory_mb": report.memory_mb,
            }
    return rows


def main(variants, rounds):
    report = {
        "accuracy": {name: accuracy(name) for name in SHIPPED},
        "latency": {variant: latency(variant, rounds) for variant in variants},
        "rounds": rounds,
        "commit": commit(),
        "device": f"{os.cpu_count()} cores, {platform.machine()}",
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--variants", nargs="*", default=list(HUB))
    parser.add_argument("--rounds", type=int, default=15)
    main(**vars(parser.parse_args()))
