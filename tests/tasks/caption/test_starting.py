import json
import shutil

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Caption
from keras_vit.data.memory import Source
from keras_vit.data.readers.texts import together
from keras_vit.tasks.caption import starting
from tests.captions import FOLDER, marks_of, numbers, original, small

TOKENS = FOLDER.parent / "tokens"
ENDS = {  # of the tokenizers, in place of ids that end the texts of the golden files
    "trocr": {"decoder": {"eos_token_id": 2}},
    "blip_captioning": {"text_config": {"sep_token_id": 3, "eos_token_id": 3}},
    "vision_encoder_decoder": {},
}
TEXTS = ["a cat", "a red circle", "two dogs"]


def published(case, folder):
    """Returns a folder like a published one: weights, settings and tokenizer."""
    shutil.copytree(TOKENS / case, folder)
    shutil.copy(FOLDER / case / "checkpoint.safetensors", folder / "model.safetensors")
    config = json.loads((FOLDER / case / "config.json").read_text())
    for part, changes in ENDS[case].items():
        config[part] |= changes
        config |= {"eos_token_id": 2} if case == "trocr" and "eos_token_id" in config else {}
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", [*ENDS])
def test_a_published_model_answers_as_before_and_keeps_its_tokenizer(case, tmp_path):
    folder = published(case, tmp_path / case)
    image = original(case).get_layer("image").input_shape[1:]
    images = np.random.default_rng(0).integers(0, 256, (3, *image)).astype("float32")
    source = Source(images, {"texts": together([(text,) for text in TEXTS])})
    task = Caption(start=folder, length=10).on(source)
    assert task.tokens == folder and len(task.marks) == 3
    model = task.model(name="x")
    (inputs, words) = task.batch({"images": images, "texts": task.read(source).targets["texts"]}, None, None)
    start, end, pad = task.marks
    assert task.marks == tuple(marks_of(model).values())
    for before, after, text in zip(inputs["texts"].numpy(), words.numpy(), TEXTS):
        count = (after >= 0).sum()
        assert before[0] == start and after[count - 1] == end and (before[count + 1 :] == pad).all()
        np.testing.assert_array_equal(before[1:count], after[: count - 1])
        assert task.text_of(after[after >= 0]) == text
    before = inputs["texts"].numpy()
    expected = original(case)({"images": images, "texts": before})
    np.testing.assert_allclose(numbers(model({"images": images, "texts": before})), numbers(expected), atol=1e-5)
    asked = Caption(start=folder, length=10)  # as a run's file has it: what was read of the start is in the model
    starting.marks_by.cache_clear()
    assert asked.of_model(model) == task and asked.of_model(model).on(source) == task
    row = np.append(words.numpy()[1][words.numpy()[1] >= 0], 0.9)
    assert asked.of_model(model).answer(row) == task.answer(row)
    model.save(tmp_path / "m.keras")
    again = keras_vit.generate_text(keras.models.load_model(tmp_path / "m.keras"), images[:1], length=10)
    assert again.texts == keras_vit.generate_text(model, images[:1], tokens=folder, length=10).texts


def test_what_does_not_fit_is_refused(tmp_path):
    small().save(tmp_path / "writer.keras")  # 30 ids, start 2, end 3, at most 12 words
    start, words = str(tmp_path / "writer.keras"), ("<pad>", "<end>", "a", "b")
    with pytest.raises(ValueError, match="writes at most 12 ids. Received: task.length=13"):
        Caption(start=start, length=13).model()
    with pytest.raises(
        ValueError, match="that of task.start, with 30 ids and the end 3. Received: 4 ids and the end 1"
    ):
        Caption(start=start, length=8, words=words).model()
    with pytest.raises(ValueError, match="takes 3 channels. Received: model.channels=1"):
        Caption(start=start, length=8).model(channels=1)
    with pytest.raises(ValueError, match=r"takes them, \(8, 8\). Received: model.image_size=16"):
        Caption(start=start, length=8).model(image_size=16)
    source = Source(np.zeros((1, 8, 8, 3), "uint8"), {"texts": together([("a",)])})
    with pytest.raises(ValueError, match="needs the tokenizer .* Received: none with"):
        Caption(start=start, length=8).on(source)
