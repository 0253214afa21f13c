import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Data
from keras_vit.data import sources, targets
from tests.data.test_targets import IMAGES, VALUES


@pytest.mark.parametrize("name", VALUES)
def test_a_target_is_the_same_from_arrays_and_from_a_list_of_examples(name):
    assert {*VALUES} == {*targets.KINDS} - {"images"}

    class Own(keras_vit.Task):
        targets = (name,)

    column = targets.usual(name)[0]
    rows = [{"image": image + 9 * i, column: np.asarray(VALUES[name])[i]} for i, image in enumerate(IMAGES)]
    arrays = (np.stack([row["image"] for row in rows]), VALUES[name])
    found = [sources.of_caller(value, Data(), Own(), (4, 4, 3), ("a", "b")) for value in (arrays, rows)]
    for source in found:
        assert {*source.targets} == {name} and len(source) == 2
    if name not in ("depths", "segmentation_masks"):  # files in a list of examples
        pixels = [source.images[:, 0, 0, 0].tolist() for source in found]
        order = [pixels[0].index(value) for value in pixels[1]]
        assert np.array_equal(found[0].targets[name][order], found[1].targets[name])
