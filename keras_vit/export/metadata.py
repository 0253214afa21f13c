"""Writes into a TFLite file what MediaPipe and TensorFlow Lite's Task Library read there: pixels' range and labels.

The metadata are a second flatbuffer, in the file's buffer `TFLITE_METADATA`; the numbers of fields below are those of
https://github.com/google-ai-edge/mediapipe/blob/master/mediapipe/tasks/metadata/metadata_schema.fbs. The labels are a
text file in an archive that is appended to the file: it is a TFLite file and a ZIP file too.
"""

import zipfile

import numpy as np

from keras_vit.models.kinds import KINDS
from keras_vit.utils.checks import BYTES

NAME, IDENTIFIER, LABELS = "TFLITE_METADATA", b"M001", "labels.txt"
IMAGE, NORMALIZATION, AXIS_LABELS = 2, 1, 2  # of ContentProperties, ProcessUnitOptions and AssociatedFileType
COLORS = {3: 1, 1: 2}  # of ColorSpaceType: RGB and gray


def write(path, facts):
    """Writes metadata into a TFLite file with the signature `serve`: pixels from 0 to 255, and labels if it has any.

    Args:
        path: The file.
        facts: Result of `prepare.facts`.
    """
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.tools import flatbuffer_utils

    labels = facts["labels"]
    model = flatbuffer_utils.read_model(str(path))
    named = {entry.tensorIndex: entry.name.decode() for entry in model.signatureDefs[0].outputs}
    outputs = [named[int(index)] for index in model.subgraphs[0].outputs]
    named = {entry.tensorIndex: entry.name.decode() for entry in model.signatureDefs[0].inputs}
    inputs = [named[int(index)] for index in model.subgraphs[0].inputs]
    buffer, entry = schema.BufferT(), schema.MetadataT()
    buffer.data = np.frombuffer(_encoded(facts, inputs, outputs, labels), "uint8")
    entry.name, entry.buffer = NAME, len(model.buffers)
    model.buffers.append(buffer)
    model.metadata = [*(model.metadata or []), entry]
    flatbuffer_utils.write_model(model, str(path))
    if labels:
        lines = "".join(f"{' '.join(label.split())}\n" for label in labels)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(zipfile.ZipInfo(LABELS), lines)


def _encoded(facts, inputs, outputs, labels):
    """Returns a `ModelMetadata` flatbuffer for a file with these inputs and outputs, in order."""
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    text, floats = builder.CreateString, lambda *values: builder.CreateNumpyVector(np.array(values, "float32"))

    def table(fields, enums=()):
        """Fields are offsets of parts that are written already, by number; enums are bytes."""
        builder.StartObject(max([*fields, *dict(enums)]) + 1)
        for number, offset in fields.items():
            builder.PrependUOffsetTRelativeSlot(number, offset, 0)
        for number, value in dict(enums).items():
            builder.PrependUint8Slot(number, value, 0)
        return builder.EndObject()

    def vector(offsets):
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return builder.EndVector()

    def named_labels():
        return {6: vector([table({0: text(LABELS)}, {2: AXIS_LABELS})])}

    def of_pixels():
        image, channels, span = {}, facts["input"]["shape"][-1], facts["input"]["range"]
        if span != list(BYTES):
            return {1: text(f"Pixels, {span}." if span else "Pixels.")}
        if channels in COLORS:  # the model rescales pixels itself: mean 0 and deviation 1
            unit = table({1: table({0: floats(0), 1: floats(1)})}, {0: NORMALIZATION})
            content = table({1: table({}, {0: COLORS[channels]})}, {0: IMAGE})
            image = {3: content, 4: vector([unit])}
        return {1: text("Pixels, 0 to 255."), **image, 5: table({0: floats(255), 1: floats(0)})}

    words = {
        "clips": "Frames of a clip, pixels from 0 to 255.",
        "texts": "Ids of words.",
        "times": "Time of each image between noise and itself.",
        "labels": "Class of each image.",
    }
    words |= {"images": "Noisy images."} if "times" in inputs else {}
    input_tables = [
        table({0: text(name), **({1: text(words[name])} if name in words else of_pixels())}) for name in inputs
    ]
    of_classes = {name for kind in KINDS.values() for name in kind.labeled}
    output_tables = [
        table({0: text(name), **(named_labels() if labels and name in of_classes else {})}) for name in outputs
    ]
    graph = table({2: vector(input_tables), 3: vector(output_tables)})
    builder.Finish(table({0: text(facts["model"]), 3: vector([graph]), 7: text("1.0.0")}), IDENTIFIER)
    return bytes(builder.Output())
