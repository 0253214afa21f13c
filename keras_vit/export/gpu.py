"""LiteRT's GPU accelerator: runs an exported file on it and compares the outputs with the CPU's.

The accelerator runs in its own process, because a driver may crash or hang. If the file does not compile, the report
says so: a phone shows that error too. If the outputs differ, the export fails, because a phone would show no error.
"""

import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

from keras_vit.export import runtimes
from keras_vit.export.comparison import Comparison
from keras_vit.models.inputs import count, first, named
from keras_vit.utils.keras_private import tflite_operators

IMAGES = 4
MACS = 5e9  # multiply-adds of one check: 15 seconds on SwiftShader, a driver that computes on the CPU, with two cores
SECONDS = 300
FOLDERS = (
    "/usr/share/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/etc/vulkan/icd.d",
    "~/.local/share/vulkan/icd.d",
)
# Largest difference from the CPU allowed, as a share of the range. Both compute these two formats in floats; measured
# differences are 1e-6. In the other formats the CPU rounds activations to 8 bits and the GPU does not: the bound is
# the CPU's own difference from the model, plus MORE.
LARGEST, MORE = {None: 1e-3, "float16": 1e-3}, 0.05
_ERRORS = (r"F\d{4} .*?\] ", r"E\d{4} .*?\] ", "ERROR: ")  # prefixes of LiteRT's error messages, the worst first
_RUN = """
import ctypes, os, sys
import numpy as np
folder, path, *loaders = sys.argv[1:]
for loader in loaders:
    try:
        ctypes.CDLL(loader, mode=ctypes.RTLD_GLOBAL)
        break
    except OSError:
        pass
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.gpu_options import GpuOptions
from ai_edge_litert.hardware_accelerator import HardwareAccelerator as Hardware
from ai_edge_litert.options import Options
options = Options(hardware_accelerators=Hardware.GPU | Hardware.CPU, gpu_options=GpuOptions(enforce_f32=True))
model = CompiledModel.from_file(path, options=options)
taken, details = model.get_input_tensor_details("serve"), model.get_output_tensor_details("serve")
given, results = dict(np.load(folder + "/inputs.npz")), {name: [] for name in details}
count, batch = (len(next(iter(given.values()))), next(iter(taken.values()))["shape"][0])
for i in range(0, count, batch):  # with new buffers: reused ones repeat outputs
    inputs = {name: model.create_input_buffer_by_name("serve", name) for name in taken}
    outputs = {name: model.create_output_buffer_by_name("serve", name) for name in details}
    for name, details_of in taken.items():
        values = np.resize(given[name][i : i + batch], details_of["shape"])
        inputs[name].write(values.astype(details_of["dtype"]))
    model.run_by_name("serve", inputs, outputs)
    for name, output in details.items():
        values = outputs[name].read(int(np.prod(output["shape"])), np.float32)
        results[name].append(np.array(values).reshape(output["shape"]))
results = {name: np.concatenate(parts)[:count] for name, parts in results.items()}
np.savez(folder + "/outputs.npz", whole=model.is_fully_accelerated(), **results)
os._exit(0)  # skips the clean-up, in which a driver may crash
"""


def drivers():
    """Returns the manifests of Vulkan drivers on this machine, from the environment or from Vulkan's folders."""
    named = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES")
    places = [pathlib.Path(place).expanduser() for place in (named.split(os.pathsep) if named else FOLDERS)]
    return [file for place in places for file in (sorted(place.glob("*.json")) if place.is_dir() else [place])
            if file.is_file()]  # fmt: skip


def compare_with_cpu(path, about, images, run, report, batch_size=1):
    """Runs a TFLite file on the GPU accelerator, if there is a Vulkan driver, and compares it with the CPU.

    Args:
        path: The file.
        about: The Keras model's `Traits`.
        images: Pixels; the first few are used.
        run: Function from images to outputs, on the CPU.
        report: The `Report` of the CPU.
        batch_size: Images per call.

    Returns:
        A `Comparison` in a list.

    Raises:
        RuntimeError: If the outputs of GPU and CPU differ.
    """
    manifests = drivers()
    if not sys.platform.startswith("linux"):
        return _not_run("this check runs on Linux only")
    if not manifests:
        return _not_run("no Vulkan driver was found")
    macs = _macs(path)
    calls = min(-(-IMAGES // batch_size), int(MACS // max(macs, 1)))
    if not calls:
        return _not_run(f"a call takes {macs / 1e9:.3g} billion multiply-adds; the check runs up to {MACS / 1e9:.3g}")
    images = first(images, min(calls * batch_size, IMAGES))
    try:
        outputs, whole, device = _outputs(path, named(images, about.inputs), manifests)
    except OSError as error:
        return _not_run(str(error))
    kind, span = about.kind, max(report.range, 1e-3)
    outputs, expected = kind.aligned(outputs, run(images))
    value = kind.largest(outputs, expected) / span
    allowed = LARGEST.get(report.quantize, MORE + report.max_abs_diff / span)
    if not value <= allowed:  # written so that NaN fails too
        raise RuntimeError(
            f"The outputs of {path.name!r} on the GPU ({device}) do not match the CPU's: they differ by up to "
            f"{value:.3g} of the range; {allowed:.3g} is allowed. The file was deleted. If no GPU will run the file, "
            "set VK_DRIVER_FILES=none."
        )
    agreement = kind.agreement(outputs, expected)
    return [Comparison("GPU", count(images), value * span, agreement, share="all" if whole else "part", note=device)]


def _macs(path):
    """Returns the multiply-adds of one call, in matrix products and convolutions."""
    interpreter, macs = runtimes.opened(path, 1), 0
    shapes = {tensor["index"]: tensor["shape"].tolist() for tensor in interpreter.get_tensor_details()}
    for op in tflite_operators(interpreter):
        if op["op_name"] in ("FULLY_CONNECTED", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D"):
            inputs, weights, output = (shapes[int(index)] for index in (*op["inputs"][:2], op["outputs"][0]))
            summed = {"BATCH_MATMUL": inputs[-1:], "DEPTHWISE_CONV_2D": weights[1:3]}.get(op["op_name"], weights[1:])
            macs += math.prod(output) * math.prod(summed)
    return macs


def _not_run(why):
    return [Comparison("GPU", note=why)]


def _outputs(path, inputs, manifests):
    """Returns the accelerator's outputs, whether it ran the whole file, and the GPU's name; OSError without outputs."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(pathlib.Path(folder) / "inputs.npz", **inputs)
        # Chromium's package has the Vulkan loader in the driver's folder.
        loaders = ["libvulkan.so.1", *(str(file.resolve().parent / "libvulkan.so.1") for file in manifests)]
        command = [sys.executable, "-c", _RUN, folder, str(path), *loaders]
        try:
            process = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise OSError(f"no result in {SECONDS} seconds") from None
        if not (pathlib.Path(folder) / "outputs.npz").exists():
            raise OSError(_reason(process))
        device = re.search(r"Selected adapter: (.*?), arch", process.stderr)
        if not device:
            raise OSError("LiteRT has no GPU accelerator here")
        with np.load(pathlib.Path(folder) / "outputs.npz") as arrays:
            outputs = {name: arrays[name] for name in arrays if name != "whole"}
            return runtimes.packed(outputs, runtimes.size_of(inputs)), bool(arrays["whole"]), device[1]


def _reason(process):
    """Returns why a process wrote no outputs, from its error messages."""
    if "Failed to initialize WebGPU environment" in process.stderr:
        return "no Vulkan driver here has a device that LiteRT can use"
    matches = [re.search(rf"^{begin}(.{{9,}}:\n.+|.{{9,}})", process.stderr, re.MULTILINE) for begin in _ERRORS]
    messages = [match[1] for match in matches if match] + process.stderr.strip().splitlines()[-1:] + ["no message"]
    how = f"was ended by signal {-process.returncode}" if process.returncode < 0 else "failed"
    return f"LiteRT {how}: {' '.join(messages[0].split())[:200]}"
