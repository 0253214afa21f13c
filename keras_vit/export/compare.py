"""Where a quantized file departs from the one it came from, layer by layer."""

import dataclasses
import pathlib
import warnings

import numpy as np

from keras_vit import checks
from keras_vit.keras_private import tflite_operators


@dataclasses.dataclass(frozen=True)
class Difference:
    """How far one tensor of two files lies apart."""

    tensor: str  # its name in both files
    operator: str  # that makes it, in the first
    shape: tuple[int, ...]
    error: float  # root mean square of the difference, relative to that of the values
    largest: float  # largest difference, relative to the largest value


def compare_layers(reference, other, images):
    """Runs two TFLite files of one model and compares what is between their ends, in the order of computation.

    Args:
        reference: Path of the float32 file.
        other: Path of another of the same model, such as its `"int8"`.
        images: Pixels, `(images, height, width, channels)`, 0..255.

    Returns:
        A list of `Difference`s, one for each tensor that both files hold under one name and in one shape, and that is
        not all zero; integers are brought back to what they stand for. A layer at which `error` leaps up is where
        accuracy is lost.

    Raises:
        FileNotFoundError: If a file is not there.
        ValueError: If they are not of one model, or the images are of another shape.

    Example:

    >>> for row in sorted(compare_layers("float.tflite", "int8.tflite", images), key=lambda row: -row.error)[:5]:
    ...     print(f"{row.error:.1%}  {row.operator}  {row.tensor}")
    """
    reference, other = checks.path("reference", reference), checks.path("other", other)
    ours, theirs = _open(reference), _open(other)
    shape = tuple(int(n) for n in ours[0].get_input_details()[0]["shape"][1:])
    for path, (interpreter, _, _) in ((reference, ours), (other, theirs)):
        batch = interpreter.get_input_details()[0]["shape"][0]
        if batch != 1:
            raise ValueError(f"Files of one image a call are compared. Received: {str(path)!r}, which takes {batch}")
    images = checks.pixels(images, shape)
    shared = [name for name in ours[1] if name in theirs[1]]
    if not shared:
        raise ValueError(f"{str(reference)!r} and {str(other)!r} share no tensor: they are of different models.")
    sums = {name: np.zeros(4) for name in shared}
    for image in images:
        for interpreter, _, _ in (ours, theirs):
            given = interpreter.get_input_details()[0]
            interpreter.set_tensor(given["index"], _stored(image[None], given))
            interpreter.invoke()
        for name in shared:
            one, two = (_value(each[0], each[1][name]) for each in (ours, theirs))
            if one.shape == two.shape:
                gap = np.abs(one - two)
                found = (np.square(gap).sum(), np.square(one).sum(), gap.max(initial=0), np.abs(one).max(initial=0))
                sums[name] = np.array([*(sums[name][:2] + found[:2]), *np.maximum(sums[name][2:], found[2:])])
    return [
        Difference(
            tensor=name,
            operator=ours[2][ours[1][name]["index"]],
            shape=tuple(int(n) for n in ours[1][name]["shape"]),
            error=float(np.sqrt(total / max(power, 1e-30))),
            largest=float(gap / max(peak, 1e-30)),
        )
        for name, (total, power, gap, peak) in sums.items()
        if power
    ]


def _open(path):
    """Returns an interpreter that keeps every tensor, its tensors by name, and the operator that makes each index."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    if not pathlib.Path(path).is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that keeping all takes memory
        interpreter = Interpreter(
            str(path),
            experimental_preserve_all_tensors=True,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
    interpreter.allocate_tensors()
    makers = {int(out): op["op_name"] for op in tflite_operators(interpreter) for out in op["outputs"]}
    tensors = {t["name"]: t for t in interpreter.get_tensor_details() if t["index"] in makers}
    return interpreter, tensors, makers


def _stored(pixels, details):
    scale, zero = details["quantization"]
    stored = pixels / scale + zero if scale else pixels
    return (stored if details["dtype"] == np.float32 else np.rint(stored)).astype(details["dtype"])


def _value(interpreter, details):
    values = interpreter.get_tensor(details["index"]).astype("float32")
    scale, zero = details["quantization"]
    return (values - zero) * scale if scale else values
