"""Which operators of a TFLite file LiteRT's compilers for NPUs refuse, by their own lists, without an NPU.

From google-ai-edge/LiteRT: litert/vendors/qualcomm/compiler/Qualcomm_QNN_Compiler.md (commit a0fcf4f), and
litert/vendors/mediatek/compiler/MediaTek_Neuro_Compiler.md (commit eee2d38) with compiler_plugin.cc (8714dad). An
operator that is refused runs on the CPU. One that is on the list may still be refused on the device: there the
manufacturer's library, which is not public, has the last word.
"""

import collections

from keras_vit.export.operators import operators

BOTH = {
    "ABS", "ADD", "AVERAGE_POOL_2D", "BATCH_MATMUL", "CAST", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D",
    "DEQUANTIZE", "DIV", "FULLY_CONNECTED", "GELU", "GREATER", "HARD_SWISH", "LEAKY_RELU", "LOGISTIC", "MAXIMUM",
    "MAX_POOL_2D", "MEAN", "MINIMUM", "MUL", "PAD", "PADV2", "PRELU", "QUANTIZE", "REDUCE_MAX", "RELU", "RESHAPE",
    "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "RSQRT", "SLICE", "SOFTMAX", "SPLIT", "SQRT", "SQUARED_DIFFERENCE",
    "STRIDED_SLICE", "SUB", "SUM", "TANH", "TRANSPOSE", "TRANSPOSE_CONV",
}  # fmt: skip
QUALCOMM = BOTH | {
    "ARG_MAX", "ARG_MIN", "BROADCAST_TO", "CEIL", "CONV_3D", "COS", "CUMSUM", "DEPTH_TO_SPACE", "DYNAMIC_UPDATE_SLICE",
    "ELU", "EMBEDDING_LOOKUP", "EQUAL", "EXP", "FLOOR", "FLOOR_DIV", "GATHER", "GATHER_ND", "GREATER_EQUAL",
    "L2_NORMALIZATION", "L2_POOL_2D", "LESS", "LESS_EQUAL", "LOG", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR",
    "MIRROR_PAD", "NEG", "NOT_EQUAL", "PACK", "POW", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MIN", "RELU6", "RELU_0_TO_1",
    "RELU_N1_TO_1", "REVERSE_V2", "ROUND", "SELECT", "SELECT_V2", "SIGN", "SIN", "SPACE_TO_DEPTH", "SQUARE", "TILE",
    "TOPK_V2", "UNPACK",
}  # fmt: skip
WHOLE = {"BOOL", "INT8", "INT16", "INT32", "UINT8", "INT4"}
FLOATS = {"FLOAT16", "FLOAT32"}
COMPILERS = {
    # name: its operators, types of tensors, and types of constants
    "Qualcomm": (QUALCOMM, *[WHOLE | FLOATS | {"FLOAT64", "INT64", "UINT16", "UINT32", "UINT64"}] * 2),
    "MediaTek": (BOTH, WHOLE | FLOATS, WHOLE | FLOATS | {"INT64"}),
}


def refused(path):
    """Returns the operators that each compiler refuses, by its name: from an operator and a reason to how many."""
    found = {compiler: collections.Counter() for compiler in COMPILERS}
    for op in operators(path):
        for compiler, (names, types, constants) in COMPILERS.items():
            wrong = [
                kind for _, kind, constant in op.inputs + op.outputs if kind not in (constants if constant else types)
            ]
            why = "not known" if op.name not in names else f"of {wrong[0].lower()}" if wrong else ""
            if why:
                found[compiler][f"{op.name} {why}"] += 1
    return {compiler: dict(counts) for compiler, counts in found.items()}
