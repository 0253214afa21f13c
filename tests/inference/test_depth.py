import json

import keras
import numpy as np
import pytest
from PIL import Image

from keras_vit import add_lora, estimate_depth, from_checkpoint, load_weights, preprocess, vit
from keras_vit.inference.depth import SIZES, own_aspect
from keras_vit.traits import Traits
from keras_vit.utils.depth_maps import resized_map
from tests import depths, poses
from tests.checkpoints.formats.test_huggingface_depth import copied
from tests.marks import few, slow

pytestmark = pytest.mark.filterwarnings("ignore::keras_vit.checkpoints.remarks.Assumption")

RNG = np.random.default_rng(0)
KEEPS = {"image_processor_type": "DPTImageProcessor", "keep_aspect_ratio": True, "do_pad": False, "resample": 3}


def read(case, folder, multiple=14):
    """Returns a golden model, as of a processor that keeps the aspect ratio."""
    folder.mkdir(exist_ok=True)
    copied(case, folder)
    side = {"depth_anything": 56, "dpt_depth": 32}[case]
    processor = KEEPS | {"ensure_multiple_of": multiple, "size": {"height": side, "width": side}}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return from_checkpoint(folder)


def photo(height, width):
    rows, columns = np.mgrid[:height, :width]
    waves = [127 + 120 * np.sin(rows / (9 + i) + columns / 13) for i in range(3)]
    return np.clip(np.stack(waves, -1) + RNG.normal(0, 5, (height, width, 3)), 0, 255).astype("uint8")


@few(3)
@pytest.mark.parametrize(
    "case, multiple, shape, size",
    [
        ("depth_anything", 14, (100, 150), (56, 84)),  # by 56 / 100: 84 = 6 patches
        ("dpt_depth", 16, (150, 100), (48, 32)),
        ("depth_anything", 14, (200, 90), (126, 56)),  # 124.4 is 9 patches, rounded
        ("depth_anything", 14, (30, 40), (42, 56)),  # enlarged by 56 / 40, the factor nearer to 1
        ("depth_anything", 14, (56, 56), (56, 56)),
        ("dpt_depth", 32, (100, 150), (32, 64)),  # 48 is 1.5 multiples
    ],
)
def test_equals_the_model_of_that_size(case, multiple, shape, size, tmp_path):
    """Positions are resampled from the file's table both ways; sizes are worked out by hand from transformers' rule."""
    model, image = read(case, tmp_path, multiple), photo(*shape)
    assert own_aspect(Traits(model)).size_of(shape) == size
    whole = from_checkpoint(tmp_path, image_size=size)
    wanted = np.asarray(whole(preprocess(whole, image)))[0, ..., 0]
    (found,) = estimate_depth(model, image)
    assert found.shape == shape and found.dtype == "float32"
    np.testing.assert_allclose(found, np.maximum(resized_map(wanted, shape), 0), atol=1e-4 * np.ptp(wanted))
    squashed = resized_map(np.asarray(model(preprocess(model, image)))[0, ..., 0], shape)
    assert shape[0] == shape[1] or np.abs(found - squashed).max() > 1e-2 * np.ptp(wanted)


@slow
def test_weights_are_shared_and_sizes_bounded(tmp_path):
    model = read("depth_anything", tmp_path)
    own, before = own_aspect(Traits(model)), len(model.get_layer("block_0")._inbound_nodes)
    for columns in range(2, 2 + SIZES + 2):
        assert own(np.zeros((1, 56, 14 * columns, 3), "float32")).shape == (1, 56, 14 * columns, 1)
    assert own.layers_of.cache_info().currsize == SIZES
    assert len(model.get_layer("block_0")._inbound_nodes) == before  # the model itself has not grown
    image = photo(60, 90)
    (first,) = estimate_depth(model, image)
    model.get_layer("block_1").mlp.fc1.kernel.assign(np.zeros((24, 48)))
    model.get_layer("head").depth.bias.assign([100.0])
    (second,) = estimate_depth(model, image)
    assert second.min() > first.max()


def test_files_arrays_and_lists(tmp_path):
    model, image = read("depth_anything", tmp_path / "m"), photo(40, 70)
    Image.fromarray(image).save(tmp_path / "a.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter: 70 x 40 as it is seen
    Image.fromarray(image).save(tmp_path / "b.png", exif=exif)
    found = estimate_depth(model, [tmp_path / "a.png", tmp_path / "b.png", image])
    assert [each.shape for each in found] == [(40, 70), (70, 40), (40, 70)]
    np.testing.assert_array_equal(found[0], found[2])
    turned = estimate_depth(model, np.rot90(image, -1).copy())[0]
    np.testing.assert_allclose(found[1], turned, atol=1e-5)


def test_a_model_of_one_size_sees_all_of_an_image():
    image = photo(20, 31)
    (found,) = estimate_depth(depths.small(), image)
    output = np.asarray(depths.small()(preprocess(depths.small(), image)))[0, ..., 0]
    np.testing.assert_allclose(found, np.maximum(resized_map(output, (20, 31)), 0), atol=1e-6)
    assert own_aspect(Traits(depths.small())) is None


def test_a_processor_that_squashes_is_followed(tmp_path):
    """Intel/dpt-large keeps no aspect ratio; multiples that no patch divides are squashed too."""
    copied("dpt_depth", tmp_path)
    assert own_aspect(Traits(from_checkpoint(tmp_path))) is None
    with pytest.warns(UserWarning, match="resizes it to one size.$"):  # and not that it is kept
        assert own_aspect(Traits(read("depth_anything", tmp_path / "a", multiple=10))) is None
    copied("depth_anything", tmp_path)
    bare = from_checkpoint(tmp_path)  # without a processor's file: as published, multiples of 14
    assert own_aspect(Traits(bare)).aspect == {"multiple": 14, "positions": "bicubic"}


def test_what_is_kept(tmp_path):
    """In a `.keras` file, and by `load_weights`."""
    model, image = read("depth_anything", tmp_path / "m"), photo(60, 90)
    model.save(tmp_path / "depth.keras")
    again = keras.models.load_model(tmp_path / "depth.keras")
    np.testing.assert_allclose(estimate_depth(again, image)[0], estimate_depth(model, image)[0], atol=1e-6)
    filled = load_weights(keras.models.clone_model(model), tmp_path / "m")
    np.testing.assert_allclose(estimate_depth(filled, image)[0], estimate_depth(model, image)[0], atol=1e-6)


def test_refused(tmp_path):
    model, image = read("depth_anything", tmp_path), photo(20, 30)
    with pytest.raises(ValueError, match="must estimate depth, such as Depth Anything. Received: 'vit"):
        estimate_depth(vit("Ti/8", image_size=16, depth=1, name="vit", num_classes=0), image)
    with pytest.raises(ValueError, match="must estimate depth"):
        estimate_depth(poses.small(), image)
    Image.fromarray(photo(100, 800)).save(tmp_path / "long.png")
    for given, name in ((photo(100, 800), "an array"), (tmp_path / "long.png", "'.*long.png'")):
        with pytest.raises(ValueError, match=f"about 6 times as long as wide .*Received: {name} of 800 x 100 pixels"):
            estimate_depth(model, given)
    with pytest.raises(ValueError, match="own aspect ratio needs a model without LoRA"):
        estimate_depth(add_lora(model, 2), image)
    rescale = read("depth_anything", tmp_path).get_layer("rescale")
    cut = read("depth_anything", tmp_path)
    cut.get_layer("rescale").metadata["evaluation"] = {"resize": "aspect"}
    with pytest.raises(ValueError, match="must see all of an image.*Received: resize='aspect'"):
        estimate_depth(cut, image)
    for aspect in ({"multiple": 0, "positions": "bicubic"}, {"multiple": 14, "positions": "lanczos"}, "14"):
        cut.get_layer("rescale").metadata["evaluation"] = {**rescale.metadata["evaluation"], "aspect": aspect}
        with pytest.raises(ValueError, match="aspect.* Received: "):
            estimate_depth(cut, image)
