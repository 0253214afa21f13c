"""Prediction by each engine: XLA, SavedModel, TFLite, ONNX Runtime, OpenVINO; optionally timm and Optimum-Intel.

python benchmarks/engines.py [--peers PYTHON] [--out benchmarks/results/engines.json]

The file has a table for each processor: run it on each in turn, and it adds or replaces that processor's. `--peers` is
a Python with torch and timm, and optimum-intel if it is installed. Each engine runs in a process of its own with all
cores; those of a model are alive together and take turns, A B C A B C, with a pause before each, since threads of the
engine before still spin for a while. A figure is the median of its turns. Weights are random, except those of `mnist`;
int8 is calibrated on random images, so only its speed is measured. TFLite takes one image a call; OpenVINO is compiled
for each number of images. About 25 minutes on two cores; `--only mnist --seconds 0.2` is a rehearsal.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BATCHES = {"mnist": (1, 8, 128), "Ti/16": (1, 8, 128), "B/16": (1, 8, 32)}  # B/16: from 8 on, an image costs the same
CONTESTANTS = [  # engine, precision
    ("XLA", "float32"),
    ("SavedModel", "float32"),
    ("TFLite", "float32"),
    ("ONNX Runtime", "float32"),
    ("OpenVINO", "float32"),
    ("OpenVINO", "bfloat16"),
    ("TFLite", "int8"),
    ("OpenVINO", "int8"),
]
PEERS = [("timm, torch.compile", "float32"), ("timm, torch.compile", "bfloat16"), ("Optimum-Intel", "float32")]
ROUNDS = (3, 15)  # turns of an engine: at least, at most
PAUSE = 0.3  # seconds


def processor():
    """Returns the processor's name."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def write_files(case, folder):
    """Exports a model in every format."""
    import numpy as np

    import keras_vit

    model = model_of(case)
    images = np.random.default_rng(0).integers(0, 256, (32, *model.input_shape[1:]))
    given = {"images": images[:2], "overwrite": True}
    keras_vit.export_saved_model(model, folder / "saved_model", **given)
    keras_vit.export_tflite(model, folder / "float32.tflite", **given)
    keras_vit.export_tflite(model, folder / "int8.tflite", quantize="int8", calibration=images, **given)
    keras_vit.export_onnx(model, folder / "model.onnx", **given)
    keras_vit.export_openvino(model, folder / "float32.xml", **given)
    try:
        for count in BATCHES[case]:  # of any number, int8 of Ti/16 cannot be compiled
            path = folder / f"int8-{count}.xml"
            keras_vit.export_openvino(model, path, quantize="int8", calibration=images, batch=count, **given)
    except ImportError as error:
        print(error, file=sys.stderr)


def model_of(case):
    import numpy as np

    import keras_vit

    if case == "mnist":
        return keras_vit.from_pretrained("mnist")
    model = keras_vit.vit(case)
    head = model.get_layer("head").kernel
    head.assign(np.random.default_rng(0).normal(size=head.shape) * 0.05)
    return model


def engine(name, precision, case, folder):
    """Returns the function from float32 pixels to outputs of an engine."""
    if name == "XLA":
        model = model_of(case)
        model.compile(jit_compile=True)
        return model.predict_on_batch
    if name in ("timm, torch.compile", "Optimum-Intel"):
        return peer(name, precision, case)
    from keras_vit.export import runtimes

    if name == "SavedModel":
        return runtimes.saved_model(folder / "saved_model")[0]
    if name == "TFLite":
        return runtimes.tflite(folder / f"{precision}.tflite")[0]
    if name == "ONNX Runtime":
        return runtimes.onnx(folder / "model.onnx")[0]
    return openvino(folder, precision)


def openvino(folder, precision):
    """Returns the function of OpenVINO, compiled for each number of images."""
    from openvino import Core

    from keras_vit.export import runtimes

    compiled = {}

    def run(images):
        if len(images) not in compiled:
            file = f"int8-{len(images)}.xml" if precision == "int8" else "float32.xml"
            fixed = Core().read_model(folder / file)
            fixed.reshape([*images.shape])
            compiled[len(images)] = runtimes.Compiled(fixed, "bf16" if precision == "bfloat16" else "f32")
        return compiled[len(images)](images)

    return run


def peer(name, precision, case):
    """Returns the same of timm's model of this size, which takes (batch, channels, height, width)."""
    import numpy as np
    import torch

    sizes = {"Ti/16": (192, 3), "B/16": (768, 12)}  # `mnist` has a stem, which they have not
    if case not in sizes:
        raise SystemExit(f"{name} has no {case}")
    width, heads = sizes[case]
    turned = lambda images: np.ascontiguousarray(images.transpose(0, 3, 1, 2))  # noqa: E731
    if name == "Optimum-Intel":
        from optimum.intel import OVModelForImageClassification
        from transformers import ViTConfig, ViTForImageClassification

        config = ViTConfig(hidden_size=width, num_attention_heads=heads, intermediate_size=4 * width, num_labels=1000)
        with tempfile.TemporaryDirectory() as folder:
            ViTForImageClassification(config).save_pretrained(folder)
            made = OVModelForImageClassification.from_pretrained(
                folder, export=True, ov_config={"INFERENCE_PRECISION_HINT": "f32"}
            )
        return lambda images: made(torch.from_numpy(turned(images))).logits
    from timm_alone import import_timm

    model = import_timm().models.VisionTransformer(embed_dim=width, num_heads=heads)
    model = torch.compile(model.eval().to(getattr(torch, precision)))

    def run(images):
        with torch.inference_mode():
            return model(torch.from_numpy(turned(images)).to(getattr(torch, precision))).float().numpy()

    return run


def work(name, precision, case, folder, shape):
    """Answers each line of input, a number of images, with the seconds of one call."""
    import numpy as np

    run, images = engine(name, precision, case, pathlib.Path(folder)), {}
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        count = int(line)
        if count not in images:
            images[count] = np.random.default_rng(0).integers(0, 256, (count, *shape)).astype("float32")
            run(images[count])  # compiles
        start = time.perf_counter()
        run(images[count])
        print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)


class Worker:
    """An engine in a process of its own."""

    def __init__(self, python, *asked):
        self.label = asked[:2]
        self.process = subprocess.Popen(
            [python, __file__, "--work", json.dumps(asked)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("DEBUG") else subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        )
        self.alive = self.answer() is not None

    def answer(self):
        """Returns what the process says next; `None` if it has ended."""
        for line in self.process.stdout:
            if line.startswith('{"'):
                return json.loads(line)
        return None

    def seconds(self, batch):
        """Returns the seconds of one call; `None` if the process has ended."""
        time.sleep(PAUSE)
        try:
            self.process.stdin.write(f"{batch}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.alive = False
        said = self.answer() if self.alive else None
        self.alive = said is not None
        return said and said["seconds"]

    def close(self):
        self.process.kill()
        self.process.wait()


def measured(case, folder, options):
    """Yields a row for each number of images and engine."""
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(folder or made) / case.replace("/", "")
        if not (folder / "float32.xml").exists():
            subprocess.run([sys.executable, __file__, "--write", case, str(folder)], check=True)
        shape = json.loads((folder / "float32.xml.json").read_text())["input"]["shape"][1:]
        asked = [(sys.executable, *each) for each in CONTESTANTS]
        asked += [(options.peers, *each) for each in PEERS] if options.peers else []
        workers = [Worker(*each, case, str(folder), shape) for each in asked]
        for batch in options.batches or BATCHES[case]:
            times = {worker.label: [worker.seconds(batch)] for worker in workers if worker.alive}  # the first settles
            slowest = sum(found[0] or 0 for found in times.values())
            rounds = min(max(int(options.seconds * len(times) / max(slowest, 1e-6)), ROUNDS[0]), ROUNDS[1])
            for _ in range(rounds):
                for worker in workers:
                    if worker.alive:
                        times[worker.label].append(worker.seconds(batch))
            for (name, precision), found in times.items():
                turns = [each for each in found[1:] if each is not None]
                if turns:
                    row = {"model": case, "batch": batch, "engine": name, "precision": precision}
                    yield {**row, "ms": round(1000 * statistics.median(turns), 2), "rounds": len(turns)}
        for worker in workers:
            worker.close()


def table(results):
    """Returns the table of all processors in Markdown: milliseconds of a call."""
    names = list(results)
    cells = {}
    for processor_name, found in results.items():
        for row in found["rows"]:
            place = row["model"], row["batch"], row["precision"], row["engine"]
            cells.setdefault(place, {})[processor_name] = row["ms"]
    lines = [f"| model | images | in | by | {' | '.join(names)} |", "|---" * (4 + len(names)) + "|"]
    for place in sorted(cells, key=lambda place: (*place[:3], min(cells[place].values()))):
        values = [f"{cells[place][name]:,.2f}" if name in cells[place] else "" for name in names]
        lines.append(f"| {' | '.join(map(str, place))} | {' | '.join(values)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "results" / "engines.json")
    parser.add_argument("--peers", help="a Python with torch and timm")
    parser.add_argument("--only", nargs="*", default=list(BATCHES), choices=list(BATCHES), help="models")
    parser.add_argument("--batches", nargs="*", type=int, help="numbers of images, of every model")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each engine and number of images, about")
    parser.add_argument("--files", help="folder to keep the exported files in, for another run")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(*json.loads(options.work))
    if options.write:
        return write_files(options.write[0], pathlib.Path(options.write[1]))
    import importlib.metadata

    from checkout import commit

    packages = ("tensorflow", "ai-edge-litert", "onnxruntime", "openvino", "nncf", "keras")
    found = {each.metadata["Name"].lower(): each.version for each in importlib.metadata.distributions()}
    about = {"commit": commit(), "cores": os.cpu_count(), "versions": {name: found.get(name) for name in packages}}
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    kept = [row for row in results.get(processor(), {"rows": []})["rows"] if row["model"] not in options.only]
    results[processor()] = {**about, "rows": kept}
    for case in options.only:
        for row in measured(case, options.files, options):
            print(row, file=sys.stderr, flush=True)
            results[processor()]["rows"].append(row)
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
