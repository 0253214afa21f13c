import json

import numpy as np
import pytest

from keras_vit import captioner, export_writer, generate_text, text_tower
from keras_vit.export import decoder_step, matrices, prepare
from tests.captions import decoder, images_of, io_in, original, small
from tests.checkpoints.helpers import unexpected
from tests.marks import slow

pytest.importorskip("tensorflow")
FORMATS = [".tflite", pytest.param(".onnx", marks=pytest.mark.filterwarnings("ignore"))]


def by_hand(folder, format, image, name="images"):
    """Writes a text with the two files: the loop of the page."""
    encoder, step = (decoder_step.load_part(folder / f"{name}{format}") for name in ("encoder", "step"))
    notes = json.loads((folder / decoder_step.NOTES).read_text())
    context, ids = encoder(**{name: image[None]}), [notes["start"]]
    cache = np.zeros(notes["cache"], "float32")
    while len(ids) < notes["length"] and ids[-1:] != [notes["end"]]:
        word, place = np.array([ids[-1:]], "int32"), np.array([len(ids) - 1], "int32")
        found = step(ids=word, place=place, cache=cache, **context)
        cache = found["next_cache"]
        ids.append(int(found["logits"].argmax()))
    return ids


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("case", "format"),
    [
        ("blip_captioning", ".tflite"),
        pytest.param("trocr", ".onnx", marks=slow),
        pytest.param("trocr", ".tflite", marks=slow),
        pytest.param("blip_captioning", ".onnx", marks=slow),
    ],
)
def test_the_files_write_word_by_word_what_the_model_writes(case, format, tmp_path, monkeypatch):
    if format == ".onnx":
        pytest.importorskip("tf2onnx")
        pytest.importorskip("onnxruntime")
        monkeypatch.setattr(matrices, "LARGE", 64)
        monkeypatch.setattr(prepare, "LIMIT", 8_000)
    model, images = original(case), images_of(original(case), io_in(case))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "writer.json").write_text("of an earlier export")
    folder = export_writer(model, tmp_path / "files", format=format, length=12, overwrite=True)
    written = [
        f"{part}{end}" for part in ("encoder", "step") for end in (format, *[f"{format}.data"] * (format == ".onnx"))
    ]
    assert sorted(path.name for path in folder.iterdir()) == [*written, "writer.json"]
    for image in images:
        ids = by_hand(folder, format, image)
        assert ids == generate_text(model, image, length=12).ids[0, : len(ids)].tolist()
    if format == ".onnx":  # the table of words is in one file, once, though it gives the logits too
        import onnx

        table = list(model.get_layer("text").get_layer("words").weights[0].shape)
        graphs = [onnx.load(folder / f"{name}.onnx").graph for name in ("encoder", "step")]
        assert [[sorted(each.dims) for each in graph.initializer].count(sorted(table)) for graph in graphs] == [0, 1]


def test_what_is_refused(tmp_path, monkeypatch):
    model = small()
    wrong = [
        (dict(length=13), "`length` must be at most the model's, 12. Received: length=13"),
        (dict(format=".h5"), "`format` must be one of '.tflite', '.onnx'. Received: format='.h5'"),
        (dict(model=decoder("language")), "`model` must be a model from keras_vit.captioner. Received: 'text'"),
    ]
    given = dict(model=model, path=tmp_path / "files", length=12)
    assert not unexpected([(lambda more=more: export_writer(**given | more), says) for more, says in wrong])
    monkeypatch.setattr(type(model), "count_params", lambda model: 2**29 if model.name == "text" else 1)
    with pytest.raises(ValueError, match="less than 2 GB in this format. Received: 'text', 2.1 GB"):
        export_writer(**given)
    monkeypatch.undo()
    (tmp_path / "files").mkdir()
    with pytest.raises(FileExistsError):
        export_writer(**given)
    with pytest.raises(FileExistsError, match="is a folder without writer.json"):
        export_writer(**given, overwrite=True)


@pytest.mark.compiled
@slow
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_the_files_translate_what_the_model_translates(format, masked, tmp_path):
    if format == ".onnx":
        pytest.importorskip("tf2onnx")
        pytest.importorskip("onnxruntime")
    source = text_tower(
        vocabulary=30, length=6, width=32, depth=1, num_heads=2, causal=False, pooling="none", masked_id=0
    )
    model = captioner(source, decoder(mask_context=masked), start=2, end=3, pad=0)
    folder = export_writer(model, tmp_path / "files", format=format, length=8)
    text = np.int32([5, 9, 11, 3, 0, 0])
    ids = by_hand(folder, format, text, "sources")
    assert ids == generate_text(model, text[None], length=8).ids[0, : len(ids)].tolist()
