import keras
import numpy as np
import pytest
from keras import ops

from keras_vit import DeformableAttention
from tests.layers.test_bilinear import bilinear

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


def by_hand(layer, x, references, maps):
    """Returns the formula of the paper, place by place."""
    weights = {v.path.split("/")[-2] + "/" + v.name: ops.convert_to_numpy(v) for v in layer.weights}

    def dense(name, tensor):
        return tensor @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    batch, queries, width = x.shape
    heads, points, depth = layer.num_heads, layer.points, width // layer.num_heads
    offsets = dense("offsets", x).reshape(batch, queries, heads, len(maps), points, 2)
    logits = np.exp(dense("shares", x).reshape(batch, queries, heads, -1))
    shares = (logits / logits.sum(-1, keepdims=True)).reshape(batch, queries, heads, len(maps), points)
    output = np.zeros((batch, queries, heads, depth))
    for b, q, h, m, p in np.ndindex(batch, queries, heads, len(maps), points):
        rows, columns = maps[m].shape[1:3]
        value = dense("value", maps[m][b])[..., h * depth : (h + 1) * depth]
        reference, offset = references[b, q], offsets[b, q, h, m, p]
        step = offset / points * reference[2:] / 2 if len(reference) == 4 else offset / (columns, rows)
        place = reference[:2] + step
        output[b, q, h] += shares[b, q, h, m, p] * bilinear(value, *(place * (columns, rows) - 0.5))
    return dense("proj", output.reshape(batch, queries, width))


@pytest.mark.parametrize("size, sides", [(4, [(3, 5)]), (2, [(4, 3), (2, 2)])])
def test_formula(size, sides):
    layer = DeformableAttention(num_heads=2, points=3)
    x, references = RNG.normal(size=(2, 4, 6)), RNG.uniform(size=(2, 4, size))  # some places lie outside
    maps = [RNG.normal(size=(2, *side, 5)) for side in sides]
    arrays = [x.astype("float32"), references.astype("float32"), [one.astype("float32") for one in maps]]
    layer(*arrays)
    layer.set_weights([RNG.normal(size=w.shape) for w in layer.weights])
    found = ops.convert_to_numpy(layer(*arrays))
    np.testing.assert_allclose(found, by_hand(layer, x, references, maps), atol=1e-4)


def test_places_are_exact_in_half_precision():
    layer = DeformableAttention(num_heads=1, points=1, dtype="mixed_bfloat16")
    maps = np.zeros((1, 1, 512, 1), "float32")
    maps[0, 0, 301] = 1
    references = np.array([[[(301 + 0.5) / 512, 0.5, 0, 0], [(302 + 0.5) / 512, 0.5, 0, 0]]], "float32")
    arguments = np.zeros((1, 2, 1), "float32"), references, maps
    layer(*arguments)
    layer.value.kernel.assign([[1.0]])
    layer.proj.kernel.assign([[1.0]])
    np.testing.assert_allclose(ops.convert_to_numpy(ops.cast(layer(*arguments), "float32"))[0, :, 0], [1, 0], atol=0.01)


def test_it_begins_by_looking_around():
    layer = DeformableAttention(num_heads=4, points=2)
    layer(np.zeros((1, 1, 8), "float32"), np.ones((1, 1, 4), "float32"), np.zeros((1, 2, 2, 8), "float32"))
    bias = ops.convert_to_numpy(layer.offsets.bias).reshape(4, 1, 2, 2)
    np.testing.assert_allclose(bias[:, 0, 0], [[1, 0], [0, 1], [-1, 0], [0, -1]], atol=1e-6)
    np.testing.assert_allclose(bias[:, :, 1], 2 * bias[:, :, 0])


def test_a_model_with_it_is_saved_and_loaded(tmp_path):
    inputs = [keras.Input(shape) for shape in ((5, 8), (5, 4), (4, 3, 6))]
    model = keras.Model(inputs, DeformableAttention(2, points=2)(*inputs))
    arrays = [RNG.uniform(size=(3, *tensor.shape[1:])).astype("float32") for tensor in inputs]
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_allclose(*(ops.convert_to_numpy(each(arrays)) for each in (model, loaded)), atol=1e-6)


@pytest.mark.parametrize(
    "shapes, said",
    [
        (((1, 5, 8), (1, 5, 3), (1, 2, 2, 8)), r"references \(batch, queries, 4 or 2\)"),
        (((1, 5, 8), (1, 5, 4), (1, 2, 8)), r"Maps must be \(batch, rows, columns, channels\)"),
        (((1, 5, 8), (1, 5, 4), [(1, 2, 2, 8), (1, 1, 1, 4)]), "Maps must have the same channels"),
        (((1, 5, 7), (1, 5, 4), (1, 2, 2, 8)), "A width of 7 cannot be split into 2 heads"),
    ],
)
def test_other_shapes_are_refused(shapes, said):
    queries, references, maps = shapes
    maps = [np.zeros(shape, "float32") for shape in maps] if isinstance(maps, list) else np.zeros(maps, "float32")
    with pytest.raises(ValueError, match=said):
        DeformableAttention(2)(np.zeros(queries, "float32"), np.zeros(references, "float32"), maps)
