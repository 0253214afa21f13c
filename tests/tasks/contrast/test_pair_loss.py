import keras
import numpy as np
import pytest

from keras_vit import text_tower, two_towers, vit
from keras_vit.config import Optim
from keras_vit.layers import Similarity
from keras_vit.layers.functional import Model
from keras_vit.layers.heads.similarity import LARGEST
from keras_vit.tasks.contrast.pair_loss import PairLoss
from keras_vit.training import optimizers
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
IMAGES, TEXTS = RNG.normal(size=(2, 6, 8)).astype("float32")
IDS = np.array([[1, 2], [3, 4], [1, 2], [3, 5], [1, 2], [5, 4]], "int32")  # three texts are equal
APART = np.arange(12).reshape(6, 2)


def rows(scale=1.0, bias=None):
    return Similarity(scale, bias, pairs=True)([IMAGES, TEXTS])


def by_hand(kind, ids, scale, bias):
    """The loss by two loops over the images and the texts, in float64."""
    unit = [x.astype("float64") / np.linalg.norm(x.astype("float64"), axis=1, keepdims=True) for x in (IMAGES, TEXTS)]
    z = np.exp(scale) * unit[0] @ unit[1].T + (bias or 0)
    total = 0.0
    for i in range(len(z)):
        same = [j for j in range(len(z)) if (ids[i] == ids[j]).all()]
        for j in range(len(z)):
            if kind == "sigmoid":
                total += np.log1p(np.exp(-z[i, j] if j in same else z[i, j]))
            elif j in same:
                total -= (z[i, j] - np.log(np.exp(z[i]).sum())) / len(same) / 2
                total -= (z[i, j] - np.log(np.exp(z[:, j]).sum())) / len(same) / 2
    return total / len(z)


@pytest.mark.parametrize("ids", [IDS, APART])
@pytest.mark.parametrize("kind, scale, bias", [("softmax", 1.0, None), ("sigmoid", 2.0, -3.0), ("softmax", 4.6, 1.0)])
def test_is_the_loop_s(kind, scale, bias, ids):
    loss = PairLoss(kind)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    for one in (loss, again):
        assert float(one(ids, rows(scale, bias))) == pytest.approx(by_hand(kind, ids, scale, bias), rel=1e-5)


def test_without_equal_texts_softmax_is_keras_cross_entropy_both_ways():
    logits = keras.ops.convert_to_numpy(Similarity(1.0)([IMAGES, TEXTS]))
    theirs = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    both = [float(theirs(np.arange(6), z)) for z in (logits, logits.T)]
    assert float(PairLoss()(APART, rows())) == pytest.approx(np.mean(both), rel=1e-5)


def test_pairs_of_one_image_may_be_marked_by_a_number():
    numbers = np.unique(IDS, axis=0, return_inverse=True)[1].reshape(-1, 1)
    assert float(PairLoss()(numbers, rows())) == float(PairLoss()(IDS, rows()))


def test_a_weight_of_zero_leaves_an_image_out():
    each = keras.ops.convert_to_numpy(PairLoss(reduction=None)(IDS, rows()))
    assert each.shape == (6,)
    weighted = PairLoss(reduction="sum")(IDS, rows(), np.float32([1, 0, 1, 1, 0, 1]))
    assert float(weighted) == pytest.approx(each[[0, 2, 3, 5]].sum(), rel=1e-6)


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_low_precision_is_summed_in_float32(kind):
    low = keras.ops.cast(rows(4.6, -10.0), "bfloat16")
    found = PairLoss(kind)(IDS, low)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    assert float(found) == pytest.approx(float(PairLoss(kind)(IDS, keras.ops.cast(low, "float32"))), rel=1e-6)
    large = np.array([[16_777_215], [16_777_214]])  # ids that float32 tells apart
    assert float(PairLoss()(large, low[:2])) == pytest.approx(float(PairLoss()(APART[:2], low[:2])))


def test_bad_arguments():
    with pytest.raises(ValueError, match="`kind` must be one of 'softmax', 'sigmoid'. Received: kind='hinge'"):
        PairLoss("hinge")
    for ids, pairs in ((IDS, IMAGES), (IDS[:, 0], np.zeros((6, 2, 8))), (IDS, np.zeros((6, 3, 8)))):
        with pytest.raises(ValueError, match=r"must be ids \(batch, length\) and rows.* Received: shapes"):
            PairLoss()(ids, pairs)


def towers(scale, bias, dtype=None):
    image = vit("mu/4", image_size=8, num_classes=8, depth=1, dtype=dtype)
    text = text_tower(vocabulary=6, length=2, width=8, depth=1, num_heads=2, end=1, projection=8, dtype=dtype)
    both = two_towers(image, text)
    embedded = both.get_layer("similarity").input
    return Model(both.input, Similarity(scale, bias, pairs=True, name="similarity")(embedded))


@pytest.mark.parametrize(
    "kind, bias, dtype",
    [
        ("softmax", None, None),
        pytest.param("sigmoid", -10.0, None, marks=slow_on_jax),
        pytest.param("softmax", None, "mixed_bfloat16", marks=slow_on_jax),
    ],
)
def test_both_towers_learn_and_the_scale_is_clipped_at_100(kind, bias, dtype):
    model = towers(np.log(100) - 1e-4, bias, dtype)
    model.compile(
        optimizers.make(Optim(learning_rate=0.1, warmup_epochs=0), model.trainable_variables, 10), PairLoss(kind)
    )
    x = {"images": RNG.uniform(0, 255, (6, 8, 8, 3)).astype("float32"), "texts": IDS}
    before = [keras.ops.convert_to_numpy(v) for v in model.trainable_variables]
    for _ in range(3):
        model.train_on_batch(x, IDS)
    for old, variable in zip(before, model.trainable_variables):
        now = keras.ops.convert_to_numpy(variable)
        assert np.isfinite(now).all()
        assert (now != old).any() or variable.path.endswith(("logit_scale", "bias")), variable.path
    scale = float(model.get_layer("similarity").logit_scale)
    assert scale <= np.float32(LARGEST) if bias is None else scale != pytest.approx(LARGEST)


def test_weights_decay_in_kernels_alone_of_both_towers():
    model = towers(1.0, -10.0)
    optimizer = optimizers.make(Optim(weight_decay=0.1), model.trainable_variables, 10)
    optimizer.build(model.trainable_variables)
    decayed = [v.path for v in model.trainable_variables if optimizer.decays(v)]  # some paths are those of both towers
    assert all(path.endswith("/kernel") for path in decayed)
    others = {v.path.rpartition("/")[2] for v in model.trainable_variables} - {"kernel"}
    assert {"logit_scale", "logit_bias", "word_embedding", "position_embedding", "gamma", "beta"} <= others
    assert len(decayed) == 2 * 4 + 3  # the kernels of two blocks, of patches, head and projection
