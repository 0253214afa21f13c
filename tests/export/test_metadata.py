import zipfile

import pytest

pytest.importorskip("tensorflow")

from flatbuffers import number_types as N
from flatbuffers.table import Table

from keras_vit import export_tflite
from keras_vit.export import metadata, prepare, runtimes
from keras_vit.traits import Traits
from tests.export.small import IMAGES, tiny


class Read:
    """A table of a flatbuffer, read by the numbers of its fields: another way than the writer's."""

    def __init__(self, data, at):
        self.table = Table(data, at)

    def at(self, number):
        return self.table.Pos + self.table.Offset(4 + 2 * number) if self.table.Offset(4 + 2 * number) else None

    def text(self, number):
        return self.table.String(self.at(number)).decode()

    def byte(self, number):
        return self.table.Get(N.Uint8Flags, self.at(number))

    def part(self, number):
        return Read(self.table.Bytes, self.table.Indirect(self.at(number)))

    def parts(self, number):
        if not self.at(number):
            return []
        start, count = self.table.Vector(self.at(number) - self.table.Pos), 0
        count = self.table.VectorLen(self.at(number) - self.table.Pos)
        return [Read(self.table.Bytes, self.table.Indirect(start + 4 * i)) for i in range(count)]

    def floats(self, number):
        return self.table.GetVectorAsNumpy(N.Float32Flags, self.at(number) - self.table.Pos).tolist()


def read(path):
    from ai_edge_litert.tools import flatbuffer_utils

    model = flatbuffer_utils.read_model(str(path))
    [entry] = [entry for entry in model.metadata if entry.name == b"TFLITE_METADATA"]
    data = bytes(bytearray(model.buffers[entry.buffer].data))
    assert data[4:8] == b"M001"
    return Read(data, int.from_bytes(data[:4], "little"))


@pytest.mark.parametrize("channels, color", [(3, 1), (1, 2)])
def test_a_file_says_the_range_of_its_pixels_and_its_labels(channels, color, tmp_path, untimed):
    path, labels = tmp_path / "m.tflite", ["a cat", "b", "c\nd", "Ωmega"]
    images = IMAGES[..., :channels]
    report = export_tflite(tiny(channels=channels), path, labels=labels, images=images)
    assert report.agreement == 1 and report.bytes == path.stat().st_size
    [graph] = read(path).parts(3)
    [pixels], [logits] = graph.parts(2), graph.parts(3)
    assert (pixels.text(0), logits.text(0)) == ("images", "logits")
    assert pixels.part(3).byte(0) == 2 and pixels.part(3).part(1).byte(0) == color  # an image, of these colors
    [unit] = pixels.parts(4)
    assert unit.byte(0) == 1 and (unit.part(1).floats(0), unit.part(1).floats(1)) == ([0], [1])  # mean and deviation
    assert (pixels.part(5).floats(0), pixels.part(5).floats(1)) == ([255], [0])  # largest and smallest
    [file] = logits.parts(6)
    assert (file.text(0), file.byte(2)) == ("labels.txt", 2)
    with zipfile.ZipFile(path) as archive:
        assert archive.read("labels.txt").decode() == "a cat\nb\nc d\nΩmega\n"


def test_without_labels_there_is_no_archive_and_outputs_keep_their_order(exported, tmp_path):
    _, path, _ = exported
    assert not zipfile.is_zipfile(path)
    copy = tmp_path / "m.tflite"
    copy.write_bytes(path.read_bytes())
    facts = {**prepare.facts(Traits(tiny(channels=5)), ["a"] * 4), "labels": ["a", "b", "c", "d"]}
    for name, files in (("boxes", 0), ("scores", 1)):  # labels are of the scores
        graph = Read(
            data := metadata._encoded(facts, ["images"], [name], facts["labels"]), int.from_bytes(data[:4], "little")
        )
        [graph] = graph.parts(3)
        assert len(graph.parts(3)[0].parts(6)) == files
        assert graph.parts(2)[0].at(3) is None  # of five channels: no image
    run, _ = runtimes.tflite(copy)
    assert run(IMAGES[:1]).shape == (1, 4)
