import keras
import numpy as np
import pytest

from keras_vit import Rescale, check_data, vit

pytestmark = pytest.mark.backend

PIXELS = np.full((2, 4, 4, 3), 255, "uint8")


GOOD = {  # by the model's logits
    3: [
        [0, 2],
        [[0], [2]],  # as keras.datasets.cifar10 has them
        np.array([[0], [2]], "uint8"),
        [[1, 0, 0], [0, 0, 1]],
        [[True, False, False], [False, True, True]],  # several at once
        np.array([[0.2, 0.3, 0.5], [0, 0, 1]], "float32"),
    ],
    1: [[0, 1], [[0], [1]], [0.0, 1.0], [[0.1], [0.9]], [True, False]],
}
BAD = {
    3: [
        ([0, 3], r"from 0 to 2. Received: 1 outside, such as \[3\]"),
        ([[0], [3]], r"such as \[3\]"),
        ([0.0, 1.0], "must be a vector of integers. Received: shape=.*, dtype=float64"),
        ([[0, 1], [1, 0]], r"\(batch,\), integers, or \(batch, 3\), 0..1. Received: shape=\(2, 2\), dtype=int64"),
        ([[0, 1, 2], [0, 0, 1]], "from 0 to 1 for each logit. Received: values from 0 to 2"),
        ([[0, np.nan, 1], [0, 0, 1]], "values from nan"),
        ([[-1.0, 0, 1], [0, 0, 1]], "values from -1 to 1"),
        ([[1, 0, 0]] * 3, "2 images and 3 labels"),
        ([0], "2 images and 1 labels"),
        ([["a", "b", "c"]] * 2, "dtype=<U1"),
        (1, r"shape=\(\)"),
    ],
    1: [
        ([0, 2], "from 0 to 1 for each logit. Received: values from 0 to 2"),
        ([[1, 0], [0, 1]], r"\(batch,\) or \(batch, 1\). Received: shape=\(2, 2\)"),
        ([0, 1, 1], "2 images and 3 labels"),
    ],
}


def classifier(logits):
    return keras.Sequential([keras.Input((4, 4, 3)), keras.layers.Flatten(), keras.layers.Dense(logits)], name="mine")


@pytest.mark.parametrize("logits", GOOD)
def test_labels_of_every_loss_pass(logits):
    model = classifier(logits)
    for labels in GOOD[logits]:
        check_data(model, PIXELS, labels)
        check_data(model, PIXELS, np.array(labels))
        check_data(model, [(PIXELS, np.array(labels))])


@pytest.mark.parametrize("logits", BAD)
def test_labels_of_no_loss_are_refused(logits):
    model = classifier(logits)
    for labels, reason in BAD[logits]:
        for data in ((PIXELS, labels), ([(PIXELS, np.array([0, 1])), (PIXELS, labels)],)):
            with pytest.raises(ValueError, match=reason):
                check_data(model, *data)


class Batches(keras.utils.PyDataset):
    def __init__(self, count, labels=(0, 1)):
        super().__init__()
        self.count, self.labels = count, np.array(labels)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        assert index < 4
        return PIXELS, self.labels, np.ones(2)


def test_the_first_batches_of_a_dataset_are_checked():
    model = classifier(3)
    check_data(model, Batches(2))
    check_data(model, Batches(1000))
    with pytest.raises(ValueError, match=r"such as \[3\]"):
        check_data(model, Batches(2, [0, 3]))
    with pytest.raises(ValueError, match="yield one batch or more. Received: list, which yields none"):
        check_data(model, [])
    with pytest.raises(ValueError, match=r"call `.batch\(size\)`. Received: images of shape \(4, 4, 3\)"):
        check_data(model, [(PIXELS[0], 1)])
    batches = iter([(PIXELS, [0, 1])])
    with pytest.raises(TypeError, match="must not be a generator.*Received: list_iterator"):
        check_data(model, batches)
    assert len(list(batches)) == 1


def test_a_dataset_of_tensorflow():
    tf = pytest.importorskip("tensorflow")
    data = tf.data.Dataset.from_tensor_slices((PIXELS, [[0], [2]]))
    model = classifier(3)
    check_data(model, data.batch(2))
    check_data(model, data.repeat().batch(2))
    with pytest.raises(ValueError, match="call `.batch"):
        check_data(model, data)
    model = keras.Sequential([keras.Input((4, 4, 3)), Rescale(), model])
    with pytest.raises(ValueError, match="multiply by 255"):
        check_data(model, data.map(lambda image, label: (tf.cast(image, "float32") / 510, label)).batch(2))
    with pytest.raises(TypeError, match="a batch of type EagerTensor"):
        check_data(model, data.map(lambda image, label: image).batch(2))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("mine", PIXELS, [0, 1]), "functional Keras model.*Received: 'mine'"),
        ((keras.Sequential([keras.layers.Dense(3)]), PIXELS, [0, 1]), "a built Sequential. Received: <Sequential"),
        ((classifier(3), PIXELS), "`labels` are required with an array of images. Received: images of type ndarray"),
        ((classifier(3), 3), "must be an array or a dataset of batches. Received: int"),
        ((classifier(3), "folder"), "Received: images of type str"),
        ((classifier(3), [PIXELS, PIXELS]), r"batches \(images, labels\). Received: a batch of type ndarray"),
    ],
)
def test_what_is_no_model_or_no_data_is_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        check_data(*arguments)


def test_a_model_of_something_else_is_refused():
    tokens = keras.Sequential([keras.Input((4, 4, 3)), keras.layers.Dense(3)], name="tokens")
    with pytest.raises(ValueError, match=r"one vector of logits for each. Received: 'tokens', .*\(None, 4, 4, 3\)"):
        check_data(tokens, PIXELS, [0, 1])


def test_check_data_before_fit():
    model = vit("mu/4", image_size=4, num_classes=3)
    check_data(model, PIXELS, np.array([0, 2]))
    for images, labels, message in (
        (PIXELS, [0, 3], r"such as \[3\]"),
        (PIXELS[:1], [0, 1], "1 images and 2 labels"),
        (PIXELS[..., :1], [0, 1], r"shape=\(2, 4, 4, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            check_data(model, images, np.array(labels))


def test_the_targets_of_a_regression_are_any_numbers():
    for outputs, good, bad in (
        (1, ([-3.5, 90], [[1.0], [70000]]), ([[1, 2], [3, 4]], [1, np.nan], [1, 2, 3], ["a", "b"])),
        (3, ([[-3.5, 90, 0], [1, 2, 3]],), ([1, 2], [[1], [2]], [[np.inf, 0, 0], [1, 2, 3]])),
    ):
        model = classifier(outputs)
        for loss in ("mse", "mae", keras.losses.Huber(), lambda y, p: keras.ops.mean((y - p) ** 4)):
            model.compile("adam", loss)
            for targets in good:
                check_data(model, PIXELS, targets)
                check_data(model, [(PIXELS, np.array(targets))])
            for targets in bad:
                with pytest.raises(ValueError, match="that of a regression|must have one label|must be finite numbers"):
                    check_data(model, PIXELS, targets)


SEVERAL = np.array([[1, 1, 0], [0, 0, 0]])
BINARY = keras.losses.BinaryCrossentropy(from_logits=True)
AS_ONE = [
    (
        BINARY,
        ["accuracy"],
        SEVERAL,
        r"compares one class of each image.*BinaryAccuracy\(threshold=0\)\].* sum to 0 to 2",
    ),
    (BINARY, [keras.metrics.F1Score(threshold=0.5)], SEVERAL, r'metrics=\[keras.metrics.AUC\(curve="PR", from_logits='),
    (BINARY, [], [0, 2], r"keras.ops.one_hot\(labels, 3\). Received: labels of shape \(2,\)"),
    ("binary_crossentropy", [], SEVERAL, r'Sequential\(\[model, keras.layers.Activation\("sigmoid"\)\]\)'),
    (
        keras.losses.CategoricalCrossentropy(from_logits=True),
        [],
        SEVERAL,
        "need a binary loss.* sum to 0 to 2, loss=Cat",
    ),
    (keras.losses.SparseCategoricalCrossentropy(from_logits=True), [], SEVERAL, "need a binary loss"),
]


def test_several_labels_have_a_binary_loss():
    model = classifier(3)
    for loss in (BINARY, keras.losses.BinaryFocalCrossentropy(from_logits=True)):
        model.compile("adam", loss, metrics=[keras.metrics.BinaryAccuracy(threshold=0)])
        for labels in (SEVERAL, SEVERAL.astype("float32"), SEVERAL.astype(bool)):
            check_data(model, PIXELS, labels)
    model.compile("adam", BINARY, metrics=["accuracy"])
    check_data(model, PIXELS, [[1, 0, 0], [0, 0, 1]])  # one label each
    ends = keras.Sequential([model, keras.layers.Activation("sigmoid")])
    ends.compile("adam", "binary_crossentropy", metrics=["binary_accuracy", "AUC"])
    check_data(ends, PIXELS, SEVERAL)


@pytest.mark.parametrize("loss, metrics, labels, message", AS_ONE)
def test_labels_that_are_taken_for_others_are_refused(loss, metrics, labels, message):
    model = classifier(3)
    model.compile("adam", loss, metrics=metrics)
    for data in ((PIXELS, np.array(labels)), ([(PIXELS, np.array(labels))],)):
        with pytest.raises(ValueError, match=message):
            check_data(model, *data)


def test_a_dataset_of_dictionaries_gets_the_line_that_it_needs():
    data = [{"image": PIXELS, "label": np.array([0, 1])}]
    model = vit("mu/4", image_size=8, num_classes=2)
    with pytest.raises(TypeError, match=r": data.map\(lambda d: \(d\['image'\], d\['label'\]\)\)"):
        check_data(model, data)


def test_pictures_that_are_all_the_same_are_told():
    model = vit("mu/4", image_size=8, num_classes=2)
    with pytest.warns(UserWarning, match=r"All pixels of `images` are the same.* Received: \(3, 8, 8, 3\), all 7"):
        check_data(model, np.full((3, 8, 8, 3), 7), np.array([0, 1, 0]))
