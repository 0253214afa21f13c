import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Data
from keras_vit.data import sources, targets
from keras_vit.utils import instance_maps
from tests.data.test_targets import IMAGES, VALUES


@pytest.mark.parametrize("name", VALUES)
def test_a_target_is_the_same_from_arrays_and_from_a_list_of_examples(name):
    assert {*VALUES} == {*targets.KINDS} - {"images", "references"}

    class Own(keras_vit.Task):
        targets = (name,)

    column = targets.usual(name)[0]
    rows = [{"image": image + 9 * i, column: np.asarray(VALUES[name])[i]} for i, image in enumerate(IMAGES)]
    arrays = (np.stack([row["image"] for row in rows]), VALUES[name])
    found = [sources.of_caller(value, Data(), Own(), (4, 4, 3), ("a", "b")) for value in (arrays, rows)]
    for source in found:
        assert {*source.targets} == {name} and len(source) == 2
    if source.targets[name].dtype != object:  # files in a list of examples
        pixels = [source.images[:, 0, 0, 0].tolist() for source in found]
        order = [pixels[0].index(value) for value in pixels[1]]
        assert np.array_equal(found[0].targets[name][order], found[1].targets[name])


def examples_of(maps, shapes=((4, 4), (4, 4))):
    class Own(keras_vit.Task):
        targets = ("instance_masks",)

    rows = [
        {"image": np.full((*shape, 3), 9 * i, "uint8"), "instances": one}
        for i, (one, shape) in enumerate(zip(maps, shapes))
    ]
    return sources.of_caller(rows, Data(), Own(), (4, 4, 3), ("a", "b"))


def test_instance_masks_of_images_of_different_sizes_are_files():
    maps = [np.full((4, 4), 1001), np.array([[-3, 0, -1, 1999]] * 3, "int16")]
    source = examples_of(maps, [(4, 4), (3, 4)])
    held = source.targets["instance_masks"]
    assert held.dtype == object and source.images.dtype == object
    found = sorted((instance_maps.pixels(item) for item in held), key=len)
    np.testing.assert_array_equal(found[0], maps[1])
    np.testing.assert_array_equal(found[1], maps[0])


@pytest.mark.parametrize(
    "wrong, said",
    [
        (np.ones((4, 4)), "Example 1: A map of objects must be integers"),
        (instance_maps.png(np.ones((4, 4), int)), "Example 1: An instance mask must be an array.*Received: bytes"),
        ("mask.png", "Received: str"),
        (
            np.ones((4, 5), int),
            r"An instance mask must have the size of its image, \(4, 4\). Received: \(4, 5\) of ima",
        ),
        (np.full((4, 4), 2000), "Instance mask 1: .* of a class from 0 to 1, .* Received: 2000 to 2000"),
        (np.full((4, 4), 2**40), "Example 1: A map of objects must have values"),
    ],
)
def test_what_is_no_instance_mask_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        examples_of([np.ones((4, 4), int), wrong])
