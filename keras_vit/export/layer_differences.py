"""Compares a quantized TFLite file with the float file, layer by layer."""

import dataclasses
import os
import pathlib
import warnings

import numpy as np

from keras_vit.models.inputs import IMAGES
from keras_vit.utils import checks
from keras_vit.utils.keras_private import tflite_operators


@dataclasses.dataclass(frozen=True)
class Difference:
    """The difference of one tensor between two files."""

    tensor: str  # its name in both files
    operator: str  # the operator that computes it, in the first file
    shape: tuple[int, ...]
    error: float  # root mean square of the difference, relative to the root mean square of the values
    largest: float  # largest difference, relative to the largest value


def compare_layers(reference: os.PathLike | str, other: os.PathLike | str, images: np.ndarray) -> list[Difference]:
    """Runs two TFLite files of one model and compares their intermediate tensors, in the order of computation.

    Args:
        reference: Path of the float32 file.
        other: Path of another file of the same model, such as its `"int8"`.
        images: Pixels, `(images, height, width, channels)`, 0..255.

    Returns:
        A list of `Difference`s, one for each tensor that has the same name and shape in both files and is not all zero.
        Integers are dequantized first. Accuracy is lost at the layers where `error` rises sharply.

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If the files are of different models, or the images have another shape.

    Example:

    >>> for row in sorted(compare_layers("float.tflite", "int8.tflite", images), key=lambda row: -row.error)[:5]:
    ...     print(f"{row.error:.1%}  {row.operator}  {row.tensor}")
    """
    reference, other = checks.path("reference", reference), checks.path("other", other)
    first, second = _tensors(reference), _tensors(other)
    shape = tuple(int(n) for n in first[0].get_input_details()[0]["shape"][1:])
    for path, (interpreter, _, _) in ((reference, first), (other, second)):
        batch = interpreter.get_input_details()[0]["shape"][0]
        if texts := [each for each in interpreter.get_input_details() if len(each["shape"]) != IMAGES]:
            raise ValueError(
                f"Both files must take images alone. Received: {str(path)!r}, which takes {texts[0]['name']}"
            )
        if batch != 1:
            raise ValueError(f"Both files must take one image a call. Received: {str(path)!r}, which takes {batch}")
    images = checks.pixels(images, shape)
    shared = [name for name in first[1] if name in second[1]]
    if not shared:
        raise ValueError(
            f"Both files must be of one model. Received: {str(reference)!r} and {str(other)!r}, which share no tensor"
        )
    sums = {name: np.zeros(4) for name in shared}
    for image in images:
        for interpreter, _, _ in (first, second):
            details = interpreter.get_input_details()[0]
            interpreter.set_tensor(details["index"], _stored(image[None], details))
            interpreter.invoke()
        for name in shared:
            one, two = (_value(each[0], each[1][name]) for each in (first, second))
            if one.shape == two.shape:
                gap = np.abs(one - two)
                new = (np.square(gap).sum(), np.square(one).sum(), gap.max(initial=0), np.abs(one).max(initial=0))
                sums[name] = np.array([*(sums[name][:2] + new[:2]), *np.maximum(sums[name][2:], new[2:])])
    return [
        Difference(
            tensor=name,
            operator=first[2][first[1][name]["index"]],
            shape=tuple(int(n) for n in first[1][name]["shape"]),
            error=float(np.sqrt(total / max(power, 1e-30))),
            largest=float(gap / max(peak, 1e-30)),
        )
        for name, (total, power, gap, peak) in sums.items()
        if power
    ]


def opened(path):
    """Returns an interpreter that keeps every tensor, and computes operator by operator."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    if not pathlib.Path(path).is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LiteRT warns that keeping all tensors takes memory
        interpreter = Interpreter(
            str(path),
            experimental_preserve_all_tensors=True,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
    interpreter.allocate_tensors()
    return interpreter


def _tensors(path):
    """Returns an interpreter, its tensors by name, and the operator that makes each index."""
    interpreter = opened(path)
    makers = {int(out): op["op_name"] for op in tflite_operators(interpreter) for out in op["outputs"]}
    tensors = {t["name"]: t for t in interpreter.get_tensor_details() if t["index"] in makers}
    return interpreter, tensors, makers


def _stored(pixels, details):
    """Returns pixels as an input tensor stores them."""
    scale, zero = details["quantization"]
    stored = pixels / scale + zero if scale else pixels
    return (stored if details["dtype"] == np.float32 else np.rint(stored)).astype(details["dtype"])


def _value(interpreter, details):
    """Returns a tensor's values, dequantized."""
    values = interpreter.get_tensor(details["index"]).astype("float32")
    scale, zero = details["quantization"]
    return (values - zero) * scale if scale else values
