"""LiteRT's GPU accelerator: whether it computes an exported file as the CPU does.

It runs in a process of its own, because a driver may crash or hang. If the file does not compile, the report says so: a
phone shows that error too. If it computes something else, the export fails, because a phone would show nothing.
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
from keras_vit.keras_private import tflite_operators

IMAGES = 4
MACS = 5e9  # multiply-adds of a check: a quarter of a minute on SwiftShader, a driver that computes on two CPU cores
SECONDS = 300
FOLDERS = (
    "/usr/share/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/etc/vulkan/icd.d",
    "~/.local/share/vulkan/icd.d",
)
# The largest difference from the CPU that passes, as a share of the range. Both compute these two in floats; they were
# 1e-6 apart. In the other formats the CPU rounds activations to 8 bits and the GPU does not: the bound is MORE than the
# CPU's own distance from the model.
LARGEST, MORE = {None: 1e-3, "float16": 1e-3}, 0.05
_ERRORS = (r"F\d{4} .*?\] ", r"E\d{4} .*?\] ", "ERROR: ")  # how LiteRT's begin, the worst first
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
given, gives = model.get_input_tensor_details("serve"), model.get_output_tensor_details("serve")
(given,), (gives,) = given.values(), gives.values()
images, found = np.load(folder + "/images.npy"), []
for i in range(0, len(images), given["shape"][0]):
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)  # used again, they repeat outputs
    inputs[0].write(np.resize(images[i : i + given["shape"][0]], given["shape"]).astype(given["dtype"]))
    model.run_by_index(0, inputs, outputs)
    found.append(np.array(outputs[0].read(int(np.prod(gives["shape"])), np.float32)).reshape(gives["shape"]))
np.savez(folder + "/found.npz", found=np.concatenate(found)[: len(images)], whole=model.is_fully_accelerated())
os._exit(0)  # past what a driver may do at the end
"""


def drivers():
    """Returns the files that name a Vulkan driver on this machine: those of the environment, or of Vulkan's folders."""
    named = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES")
    places = [pathlib.Path(place).expanduser() for place in (named.split(os.pathsep) if named else FOLDERS)]
    return [file for place in places for file in (sorted(place.glob("*.json")) if place.is_dir() else [place])
            if file.is_file()]  # fmt: skip


def check(path, images, run, report, batch_size=1):
    """Runs a TFLite file on the GPU accelerator, where there is a Vulkan driver, and compares it with the CPU.

    Args:
        path: The file.
        images: Pixels, of which it takes the first few.
        run: Function from images to outputs, on the CPU.
        report: The `Report` of the CPU.
        batch_size: Images of one call.

    Returns:
        Fields of the report, as a dictionary.

    Raises:
        RuntimeError: If the GPU computes something else.
    """
    found = drivers()
    if not sys.platform.startswith("linux"):
        return _not_run("it is tried on Linux alone")
    if not found:
        return _not_run("no Vulkan driver was found")
    macs = _macs(path)
    calls = min(-(-IMAGES // batch_size), int(MACS // max(macs, 1)))
    if not calls:
        return _not_run(f"a call takes {macs / 1e9:.3g} billion multiply-adds, and at most {MACS / 1e9:.3g} are tried")
    images = images[: min(calls * batch_size, IMAGES)]
    try:
        outputs, whole, device = _outputs(path, images, found)
    except OSError as error:
        return _not_run(str(error))
    expected, span = run(images), max(report.range, 1e-3)
    value = float(np.abs(outputs - expected).max()) / span
    allowed = LARGEST.get(report.quantize, MORE + report.max_abs_diff / span)
    if not value <= allowed:  # written so that NaN fails too
        raise RuntimeError(
            f"{path.name!r} gives something else on the GPU ({device}) than on the CPU: largest difference {value:.3g} "
            f"of the range, and at most {allowed:.3g} is let through. Nothing was kept. For a file that no GPU will "
            "run, set VK_DRIVER_FILES=none."
        )
    return {
        "gpu": "all" if whole else "part",
        "gpu_note": device,
        "gpu_images": len(images),
        "gpu_max_abs_diff": value * span,
        "gpu_agreement": float((outputs.argmax(-1) == expected.argmax(-1)).mean()),
    }


def _macs(path):
    """Returns the multiply-adds of a call, through matrix products and convolutions."""
    interpreter, macs = runtimes.opened(path, 1), 0
    shapes = {tensor["index"]: tensor["shape"].tolist() for tensor in interpreter.get_tensor_details()}
    for op in tflite_operators(interpreter):
        if op["op_name"] in ("FULLY_CONNECTED", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D"):
            given, weights, output = (shapes[int(index)] for index in (*op["inputs"][:2], op["outputs"][0]))
            summed = {"BATCH_MATMUL": given[-1:], "DEPTHWISE_CONV_2D": weights[1:3]}.get(op["op_name"], weights[1:])
            macs += math.prod(output) * math.prod(summed)
    return macs


def _not_run(why):
    return {"gpu": "not run", "gpu_note": why}


def _outputs(path, images, found):
    """Returns what the accelerator gives, whether it took all of the file, and the GPU; OSError if it gives nothing."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(pathlib.Path(folder) / "images.npy", images)
        # Chromium's package has Vulkan's own library in the same folder.
        loaders = ["libvulkan.so.1", *(str(file.resolve().parent / "libvulkan.so.1") for file in found)]
        command = [sys.executable, "-c", _RUN, folder, str(path), *loaders]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise OSError(f"no answer in {SECONDS} seconds") from None
        if not (pathlib.Path(folder) / "found.npz").exists():
            raise OSError(_reason(done))
        device = re.search(r"Selected adapter: (.*?), arch", done.stderr)
        if not device:
            raise OSError("LiteRT has no GPU accelerator here")
        with np.load(pathlib.Path(folder) / "found.npz") as arrays:
            return arrays["found"], bool(arrays["whole"]), device[1]


def _reason(done):
    """Returns why a process gave nothing, from what it said."""
    if "Failed to initialize WebGPU environment" in done.stderr:
        return "no driver here has a device that LiteRT takes"
    found = [re.search(rf"^{begin}(.{{9,}}:\n.+|.{{9,}})", done.stderr, re.MULTILINE) for begin in _ERRORS]
    said = [match[1] for match in found if match] + done.stderr.strip().splitlines()[-1:] + ["without a word"]
    how = f"was ended by signal {-done.returncode}" if done.returncode < 0 else "failed"
    return f"LiteRT {how}: {' '.join(said[0].split())[:200]}"
