"""Rewrites TFLite graphs into forms that LiteRT's GPU accelerator computes correctly.

TensorFlow's converter writes forms that the CPU computes correctly and the GPU (ai-edge-litert 2.3) does not:

- A constant table is added to tokens, or multiplied with them, and one operand has fewer axes, or both have two.
  Learned positions take this form, because the converter drops the RESHAPE after a dense layer. The GPU aligns axes on
  the left: it reads the first row of the table for every token.
- The same for any two tensors of 8-bit integers with different ranks, also vectors.
- The sum of tokens, `(1, tokens, width)`, and the output of a dense layer, `(tokens, width)`, is right, but the older
  GPU delegate leaves it to the CPU (`CheckGpuDelegateCompatibility` in its gpu_compatibility.cc). On a CPU the RESHAPE
  takes 2 % of the time: only files in float16 get it.
- A dense layer with 8-bit weights flattens a tensor of more axes. The result is wrong, or the file does not compile.
- A matrix product takes the same tensor twice. The process crashes.

One RESHAPE before or after the operator changes each form. XNNPACK runs it, and no number changes.
"""

import copy
import math

import numpy as np

ELEMENTWISE = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE")


def align(path, delegate=False):
    """Rewrites a TFLite file if it has such forms; with `delegate` also those that the older GPU delegate refuses."""
    from ai_edge_litert.tools import flatbuffer_utils

    model = flatbuffer_utils.read_model(str(path))
    if sum([_Graph(model, graph, delegate).align() for graph in model.subgraphs]):
        flatbuffer_utils.write_model(model, str(path))


class _Graph:
    """A graph whose operators are written again, one after the other."""

    def __init__(self, model, graph, delegate):
        from ai_edge_litert import schema_py_generated as schema

        self.schema = schema
        self.model = model
        self.graph = graph
        self.types = {code: name for name, code in vars(schema.TensorType).items()}
        self.operators, graph.operators = graph.operators, []
        self.makers = {int(index): op for op in self.operators for index in op.outputs}
        self.changed = False
        self.delegate = delegate

    def align(self):
        """Rewrites the operators; returns whether anything changed."""
        for op in self.operators:
            kind = self._kind(op)
            if kind in ELEMENTWISE:
                self._elementwise(op, uneven=self.delegate and kind in ("ADD", "MUL"))
            elif kind == "FULLY_CONNECTED":
                self._dense(op)
            elif kind == "BATCH_MATMUL" and op.inputs[0] == op.inputs[1]:
                op.inputs = [op.inputs[0], self._reshaped(op.inputs[1], self._shape(op.inputs[1]))]
                self.graph.operators.append(op)
            else:
                self.graph.operators.append(op)
        used = {int(index) for op in self.graph.operators for index in op.inputs} | set(map(int, self.graph.outputs))
        self.graph.operators = [op for op in self.graph.operators if used & set(map(int, op.outputs))]
        return self.changed

    def _elementwise(self, op, uneven):
        shapes = [self._shape(index) for index in op.inputs]
        table = any(self._constant(index) and math.prod(shape[:-1]) > 1 for index, shape in zip(op.inputs, shapes))
        rank = max(3 if table else 0, *map(len, shapes))
        integers = any(self._type(index) == "INT8" for index in op.inputs)
        uneven = uneven and len({len(shape) for shape in shapes if len(shape) > 1}) > 1
        if not (table or integers or uneven) or {len(shape) for shape in shapes if shape} <= {rank}:
            self.graph.operators.append(op)
            return
        inputs = zip(op.inputs, shapes)
        op.inputs = [self._reshaped(i, _padded(s, rank)) if 0 < len(s) < rank else i for i, s in inputs]
        self._append(op, _padded(self._shape(op.outputs[0]), rank))

    def _dense(self, op):
        *rows, width = self._shape(op.inputs[0])
        small = self._type(op.inputs[1]) != "FLOAT32" and self._type(op.inputs[0]) in ("FLOAT32", "INT8")
        if small and len(rows) > 1 and not op.builtinOptions.keepNumDims:
            op.inputs = [self._reshaped(op.inputs[0], [math.prod(rows), width]), *op.inputs[1:]]
        self.graph.operators.append(op)

    def _append(self, op, shape):
        """Appends an operator with an output of this shape, and a RESHAPE back to its own shape if that differs."""
        own = op.outputs[0]
        if shape != self._shape(own):
            op.outputs = [self._like(own, shape)]
        self.graph.operators.append(op)
        if op.outputs[0] != own:
            self._reshape(op.outputs[0], own)

    def _reshaped(self, index, shape):
        """Returns the index of a tensor in another shape; constants need no operator for it."""
        new, self.changed = self._like(index, shape), True
        if self._half(index):
            op = copy.copy(self.makers[int(index)])
            op.inputs, op.outputs = [self._reshaped(op.inputs[0], shape)], [new]
            self.graph.operators.append(op)
        elif self._constant(index):
            self.graph.tensors[new].buffer = self.graph.tensors[index].buffer
        else:
            self._reshape(index, new)
        return new

    def _like(self, index, shape):
        tensor = copy.copy(self.graph.tensors[index])
        tensor.shape, tensor.shapeSignature, tensor.buffer = np.array(shape, "int32"), None, 0
        return self._add(tensor, tensor.name + b"/" + "x".join(map(str, shape)).encode())

    def _add(self, tensor, name):
        tensor.name = name
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def _reshape(self, source, target):
        schema, shape = self.schema, np.array(self._shape(target), "int32")
        buffer, sizes, op = schema.BufferT(), schema.TensorT(), schema.OperatorT()
        buffer.data = shape.view("uint8")
        self.model.buffers.append(buffer)
        sizes.shape, sizes.type = np.array([len(shape)], "int32"), schema.TensorType.INT32
        sizes.buffer = len(self.model.buffers) - 1
        op.opcodeIndex, op.outputs = self._code(), [target]
        op.inputs = [source, self._add(sizes, self.graph.tensors[target].name + b"/sizes")]
        op.builtinOptionsType, op.builtinOptions = schema.BuiltinOptions.ReshapeOptions, schema.ReshapeOptionsT()
        op.builtinOptions.newShape = shape
        self.graph.operators.append(op)

    def _code(self):
        """Returns the index of RESHAPE in the file's list of operator codes."""
        codes, reshape = self.model.operatorCodes, self.schema.BuiltinOperator.RESHAPE
        places = [i for i, code in enumerate(codes) if _builtin(code) == reshape]
        if not places:
            code = self.schema.OperatorCodeT()
            code.builtinCode, code.deprecatedBuiltinCode, code.version = reshape, reshape, 1
            codes.append(code)
        return places[0] if places else len(codes) - 1

    def _kind(self, op):
        names = {code: name for name, code in vars(self.schema.BuiltinOperator).items()}
        return names[_builtin(self.model.operatorCodes[op.opcodeIndex])]

    def _shape(self, index):
        shape = self.graph.tensors[index].shape
        return [] if shape is None else [int(side) for side in shape]

    def _type(self, index):
        return self.types[self.graph.tensors[index].type]

    def _constant(self, index):
        data = self.model.buffers[self.graph.tensors[index].buffer].data
        return (data is not None and len(data) > 0) or self._half(index)

    def _half(self, index):
        """Whether a tensor is a float16 constant that the graph converts to float32."""
        maker = self.makers.get(int(index))
        return maker is not None and self._kind(maker) == "DEQUANTIZE" and self._constant(maker.inputs[0])


def _padded(shape, rank):
    return [1] * (rank - len(shape)) + shape


def _builtin(code):
    return max(code.builtinCode, code.deprecatedBuiltinCode)
