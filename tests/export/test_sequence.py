import dataclasses
import json

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.export import comparison, sequence
from tests.export.small import IMAGES, tiny

GIVEN = {"compared": (IMAGES, None, None), "labels": None, "probabilities": False, "overwrite": False}


def test_everything_is_checked_before_anything_is_written(tmp_path):
    path = tmp_path / "new" / "m.bin"
    for wrong, said in (
        ({"labels": ["a"]}, "`labels` must be a list of 4 class names. Received: 1"),
        ({"compared": (None, [0], None)}, "images=None"),
        ({"compared": (IMAGES[:, :4], None, None)}, "must have the shape that the model takes"),
    ):
        with pytest.raises(ValueError, match=said):
            sequence.checked("A file", tiny(), path, ".bin", **GIVEN | wrong)
    with pytest.raises(ValueError, match="`path` must end in .txt. Received: path='.*m.bin'"):
        sequence.checked("A file", tiny(), path, ".txt", **GIVEN)
    assert not list(tmp_path.iterdir())
    (tmp_path / "m.bin.json").write_text("{}")
    with pytest.raises(FileExistsError, match="m.bin.json' exists"):
        sequence.checked("A file", tiny(), tmp_path / "m.bin", ".bin", **GIVEN)


def test_a_file_is_written_run_compared_and_described_or_deleted(tmp_path):
    model, path = tiny(), tmp_path / "m.bin"
    export = sequence.checked("A file", model, path, ".bin", **GIVEN, maker="me")
    write = lambda path: path.write_text("weights")  # noqa: E731
    wrong = lambda path: (lambda images: np.asarray(model(images))[:, ::-1], {})  # noqa: E731
    with pytest.raises(RuntimeError, match="The exported file 'm.bin' does not match the model"):
        sequence.written(export, write, wrong)
    assert not list(tmp_path.iterdir())
    right = lambda path: (lambda images: np.asarray(model(images)), {"ADD": 1})  # noqa: E731
    report = sequence.written(export, write, right, lambda *_: [comparison.Comparison("GPU", note="none")])
    assert report.path == str(path) and report.bytes == len("weights") and report.on("GPU").note == "none"
    said = json.loads((tmp_path / "m.bin.json").read_text())
    assert said["maker"] == "me" and said["report"] == json.loads(json.dumps(dataclasses.asdict(report)))


RULES = "No conversion rule found for operations: Foo"
ERRORS = {  # what libraries raise, and what is said of it
    "Exception from a.cpp:1:\nCheck 'x' failed\nThe shapes differ\n\n": "The shapes differ",
    f"Check 'false' failed\nSummary:\n-- {RULES}\nTo add it": RULES,
    "Exception encountered when calling D.call().\n\n\x1b[1mToo wide.\x1b[0m\n\nArguments received": "Too wide",
    "Unknown\nmore": "Unknown",
}


@pytest.mark.parametrize("text", ERRORS)
@pytest.mark.parametrize("kind", [RuntimeError, KeyError])
def test_errors_of_libraries_are_one_sentence(text, kind, tmp_path):
    export = sequence.checked("A file", tiny(), tmp_path / "m.bin", ".bin", **GIVEN)

    def write(path):
        path.write_text("half")
        raise kind(text) if kind is RuntimeError else type("Own", (Exception,), {})(text)

    with pytest.raises(RuntimeError) as caught:
        sequence.written(export, write, None)
    said = f"{export.model.name!r} cannot be exported as a .bin file: {ERRORS[text]}. Nothing was kept."
    assert str(caught.value) == said
    assert not list(tmp_path.iterdir())


def test_an_own_sentence_stays(tmp_path):
    export = sequence.checked("A file", tiny(), tmp_path / "m.bin", ".bin", **GIVEN)

    def write(path):
        raise ValueError("It is too large. Received: 3")

    with pytest.raises(ValueError, match="^It is too large. Received: 3$"):
        sequence.written(export, write, None)
