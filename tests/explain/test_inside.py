import numpy as np

from keras_vit.explain import inside
from keras_vit.models.between import between
from tests.explain.models import IMAGES, tiny


def test_parts_of_a_batch_are_joined(monkeypatch):
    seen = []

    def add(model, images, labels):
        seen.append(len(images))
        return images.sum((1, 2, 3)) + labels

    images = np.concatenate([IMAGES] * 4)
    monkeypatch.setattr(inside, "SCORES", 5 * 3 * 2 * 7**2)  # of five images
    found = inside.in_parts(add, tiny(), images, np.arange(12))
    assert seen == [5, 5, 2]
    np.testing.assert_array_equal(found, images.sum((1, 2, 3)) + np.arange(12))


def test_between_two_tensors_is_computed_and_adds_no_nodes():
    model = tiny(tokens={"distilled": True})
    middle, nodes = model.get_layer("block_1").output, [len(layer._inbound_nodes) for layer in model.layers]
    (value,) = inside.run(model, [middle], IMAGES)
    found = between(middle, model.outputs[0], value)
    np.testing.assert_allclose(np.asarray(found), np.asarray(model(IMAGES)), atol=1e-5)
    assert [len(layer._inbound_nodes) for layer in model.layers] == nodes
