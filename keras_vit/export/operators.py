"""The operators of a TFLite file."""


class Operator:
    """An operator of a file: its name, options, and the shapes, types and constness of its inputs and outputs."""

    def __init__(self, name, options, inputs, outputs):
        self.name = name
        self.options = options
        self.inputs = inputs
        self.outputs = outputs


def operators(path):
    """Yields each `Operator` of a TFLite file, in order."""
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.tools import flatbuffer_utils

    model = flatbuffer_utils.read_model(str(path))
    names, types = (
        {code: name for name, code in vars(kind).items()} for kind in (schema.BuiltinOperator, schema.TensorType)
    )
    for graph in model.subgraphs:

        def described(index, graph=graph):
            tensor = graph.tensors[index]
            data = model.buffers[tensor.buffer].data
            shape = [] if tensor.shape is None else [int(side) for side in tensor.shape]
            return shape, types[tensor.type], data is not None and len(data) > 0

        for op in graph.operators:
            code = model.operatorCodes[op.opcodeIndex]
            name = names[max(code.builtinCode, code.deprecatedBuiltinCode)]
            inputs = [described(index) for index in op.inputs if index >= 0]
            yield Operator(name, op.builtinOptions, inputs, [described(index) for index in op.outputs])
