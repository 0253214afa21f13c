"""Which operators of a TFLite file LiteRT's GPU delegate refuses, by its own rules, without a GPU.

From `CheckGpuDelegateCompatibility` in tflite/tools/versioning/gpu_compatibility.cc of google-ai-edge/LiteRT (commit
007226f), as far as files of this package can have the operators; tensors have at most four axes
(tflite/delegates/gpu/common/model_builder.cc). An operator that is refused runs on the CPU, and the tokens travel there
and back. TensorFlow 2.21 has an `Analyzer` with these rules, but it finds every file compatible.
"""

import collections

from keras_vit.export.operators import operators

AXES = 4
FREE = {
    "ABS", "ADD_N", "AVERAGE_POOL_2D", "BATCH_MATMUL", "CEIL", "CONCATENATION", "CONV_2D", "COS",
    "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DIV", "ELU", "EQUAL", "EXP", "FLOOR", "FLOOR_DIV", "FLOOR_MOD",
    "FULLY_CONNECTED", "GELU", "GREATER", "GREATER_EQUAL", "HARD_SWISH", "LEAKY_RELU", "LESS", "LESS_EQUAL", "LOG",
    "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOGISTIC", "MAXIMUM", "MAX_POOL_2D", "MINIMUM", "NEG",
    "NOT_EQUAL", "PACK", "POW", "PRELU", "QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "RESHAPE",
    "RESIZE_NEAREST_NEIGHBOR", "ROUND", "RSQRT", "SIGN", "SIN", "SPACE_TO_DEPTH",
    "SPLIT", "SPLIT_V", "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "SUB", "TANH", "TILE", "TOPK_V2", "TRANSPOSE",
    "TRANSPOSE_CONV",
}  # fmt: skip
FLOATS = ("FLOAT16", "FLOAT32")
CASTS = {("BOOL", kind) for kind in FLOATS} | {(kind, "BOOL") for kind in FLOATS}
CASTS |= {(one, other) for one in ("FLOAT32", "INT32") for other in ("FLOAT32", "INT32")}
CASTS |= {("FLOAT16", "FLOAT32")}  # of weights, which are read as constants


def _sums(op):
    long, short = sorted((shape for shape, _, _ in op.inputs), key=len, reverse=True)
    fits = len(long) == len(short) or len(short) < 2
    if len(long) == 4:
        fits |= long[0] == 1 and (len(short) == 3 or short == [1, 1])
        fits |= len(short) == 2 and short == [long[0], long[3]]
    return "" if fits else f"of shapes {long} and {short}"


def _selects(op):
    (_, kind, _), *branches = op.inputs
    wrong = [
        shape
        for shape, _, constant in branches
        if shape not in ([], [1], op.outputs[0][0]) or (constant and len(shape) == 2)
    ]
    return f"by {kind.lower()}" if kind not in ("BOOL", *FLOATS) else f"from a shape {wrong[0]}" if wrong else ""


def _one_hots(op):
    (shape, kind, _), _, *values = op.inputs
    plain = all(of == "FLOAT32" and constant and shape in ([], [1]) for shape, of, constant in values)
    if kind != "INT32" or op.options.axis != -1 or not plain:
        return "but of int32 indices on the last axis with constant float32 values"
    return "" if all(side == 1 for side in shape[len(shape) > 3 : -1]) else f"of indices of shape {shape}"


def _slices(op):
    masks = [mask for mask in ("ellipsisMask", "newAxisMask", "shrinkAxisMask") if getattr(op.options, mask, 0)]
    axes = len(op.inputs[0][0])
    return f"with {masks[0]}" if masks else "" if axes in (3, 4) else f"of {axes} axes"


def _pads(op):
    rows = op.inputs[1][0][0]
    if op.name == "MIRROR_PAD" and op.options.mode != 0:
        return "that is not reflective"
    return "" if rows in (3, 4) else f"of {rows} axes"


def _gathers(op):
    shape, kind, _ = op.inputs[1]
    return "" if len(shape) == 1 and kind == "INT32" else f"with indices of {len(shape)} axes, {kind.lower()}"


def _reduces(op):
    _, kind, constant = op.inputs[1]
    return "" if constant and kind == "INT32" else "with axes that are no constant"


def _casts(op):
    pair = op.inputs[0][1], op.outputs[0][1]
    return "" if pair in CASTS else f"from {pair[0].lower()} to {pair[1].lower()}"


def _dequantizes(op):
    return "of int16" if op.inputs[0][1] == "INT16" else ""


def _resizes(op):
    both = op.options.alignCorners and op.options.halfPixelCenters
    return "with corners aligned and half-pixel centres" if both else ""


RULES = {
    **dict.fromkeys(FREE, lambda op: ""),
    **dict.fromkeys(("SLICE", "STRIDED_SLICE"), _slices),
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _pads),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ALL", "REDUCE_ANY"), _reduces),
    **dict.fromkeys(("ADD", "MUL"), _sums),
    **dict.fromkeys(("SELECT", "SELECT_V2"), _selects),
    "ONE_HOT": _one_hots,
    "SOFTMAX": lambda op: "" if op.options.beta == 1 else f"with beta={op.options.beta:g}",
    "GATHER": _gathers,
    "CAST": _casts,
    "DEQUANTIZE": _dequantizes,
    "RESIZE_BILINEAR": _resizes,
}


def refused(path):
    """Returns the operators that the GPU delegate refuses: from a name with a reason to how many there are."""
    found = collections.Counter()
    for op in operators(path):
        deep = max((len(shape) for shape, _, _ in op.inputs + op.outputs), default=0)
        why = "" if op.name in RULES else "not known"
        why = why or (f"of {deep} axes" if deep > AXES else RULES[op.name](op))
        if why:
            found[f"{op.name} {why}"] += 1
    return dict(found)
