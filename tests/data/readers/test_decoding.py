import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.readers.decoding import decode, error_reason, opened  # noqa: E402
from tests import picturefiles  # noqa: E402
from tests.marks import slow  # noqa: E402


def test_pixels_are_what_was_saved():
    """Other kinds of files are compared with Pillow in `test_images`."""
    found = {}
    for name in ("color.png", "alpha.png", "alpha.webp", "color.webp", "moving.webp", "moving.png", "color.bmp"):
        found[name] = np.array_equal(decode(tf.constant(picturefiles.EXACT[name]), 3), picturefiles.COLOR)
    gray = decode(tf.constant(picturefiles.EXACT["gray.png"]), 1)
    assert all(found.values()) and np.array_equal(gray[..., 0], picturefiles.GRAY), found


@slow
def test_decoding_in_a_graph_has_a_known_number_of_channels():
    for channels in (1, 3):
        items = tf.data.Dataset.from_tensor_slices([picturefiles.EXACT[n] for n in ("gray.png", "moving_alpha.webp")])
        images = items.map(lambda item, channels=channels: decode(item, channels))
        assert images.element_spec.shape.as_list() == [None, None, channels]
        assert {image.shape for image in images} == {(picturefiles.HEIGHT, picturefiles.WIDTH, channels)}


def test_pixels_are_returned_as_they_are():
    pixels = tf.constant(picturefiles.COLOR)
    assert decode(pixels, 3) is pixels


def test_an_error_is_one_line_without_operations():
    with pytest.raises(tf.errors.OpError) as raised:
        decode(tf.constant(picturefiles.EXACT["color.png"][:60]), 3)
    reason = error_reason(raised.value)
    assert "PNG" in reason and "\n" not in reason and "[Op" not in reason


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["png", "jpeg", "pixels"])
def test_a_box_is_what_is_cut_out_of_the_whole(kind, channels):
    pixels = np.arange(40 * 50 * 3).reshape(40, 50, 3).astype("uint8") // 9
    item = {"png": tf.io.encode_png, "jpeg": tf.io.encode_jpeg, "pixels": lambda p: tf.constant(p[..., :channels])}
    item = item[kind](pixels)
    shape, box = opened(item, channels)
    assert shape.numpy().tolist() == [40, 50]
    whole, cut = decode(item, channels).numpy(), box((8, 16), (16, 24)).numpy()
    assert cut.shape == (16, 24, channels) and cut.dtype == np.uint8
    np.testing.assert_allclose(cut[2:-2, 2:-2].astype(int), whole[10:22, 18:38], atol=0 if kind != "jpeg" else 4)
