import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.models.by_frames import by_frames, is_by_frames
from keras_vit.preparing.clip_preparation import frames_rule
from keras_vit.traits import Traits
from tests.towers import WORDS, two_towers

pytestmark = pytest.mark.backend
CLIPS = np.random.default_rng(0).integers(0, 256, (3, 5, 12, 8, 3)).astype("float32")


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize("bias", [None, -1.0])
def test_a_clip_is_the_mean_of_its_frames(bias, tmp_path):
    """CLIP4Clip: unit vectors of frames, their mean, and that of length 1 again."""
    model = two_towers(bias, words=WORDS)
    image = model.get_layer("image")
    expected = unit(np.stack([unit(np.asarray(image(clip))) for clip in CLIPS]).mean(1))
    clips = by_frames(model, 5)
    assert is_by_frames(clips) and not is_by_frames(model)
    np.testing.assert_allclose(unit(np.asarray(clips.get_layer("image")(CLIPS))), expected, atol=1e-6)
    ids = keras_vit.tokenizer(WORDS, 8)(["a red cat", "dog", "a green car"])
    text = unit(np.asarray(model.get_layer("text")(ids)))
    logits = np.exp(1.5) * expected @ text.T + (bias or 0)
    np.testing.assert_allclose(np.asarray(clips({"images": CLIPS, "texts": ids})), logits, atol=1e-4)
    clips.save(tmp_path / "clips.keras")
    again = keras.models.load_model(tmp_path / "clips.keras")
    np.testing.assert_array_equal(np.asarray(again({"images": CLIPS, "texts": ids})).shape, logits.shape)
    alone = Traits(clips.get_layer("image"))
    assert alone.gives == "embeddings" and alone.inputs == {"clips": (5, 12, 8, 3)} and alone.range == (0, 255)
    assert frames_rule(alone.model) == {"stride": 1, "segments": True, "centered": False}
    assert frames_rule(keras_vit.video_vit("mu/4", frames=4, image_size=8))["segments"] is False


def test_the_order_of_frames_does_not_matter():
    clips = by_frames(two_towers().get_layer("image"), 5)
    np.testing.assert_allclose(np.asarray(clips(CLIPS)), np.asarray(clips(CLIPS[:, ::-1])), atol=1e-6)


def test_other_models_are_refused():
    video = keras_vit.video_vit("mu/4", frames=4, image_size=8, num_classes=3)
    maps = keras_vit.vit("mu/4", image_size=8, pooling="none", num_classes=0)
    for model, received in ((video, "a model of clips"), (maps, "shapes")):
        with pytest.raises(ValueError, match=f"from images of known size to vectors.*Received: '.*', {received}"):
            by_frames(model)
    with pytest.raises(ValueError, match="positive"):
        by_frames(two_towers(), 0)
