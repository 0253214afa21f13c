"""What was said of a loss, a metric or an optimizer is in the file of a compiled model."""

import inspect
import itertools

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import vit
from keras_vit.tasks import caption, classify, contrast, depth, detect, generate, pretrain, regress, restore, segment
from tests.marks import few

PACKAGES = (caption, classify, contrast, depth, detect, generate, pretrain, regress, restore, segment)
KINDS = {"ClassLoss": "sigmoid", "NumberLoss": "l1", "PairLoss": "sigmoid", "SeveralLoss": "asymmetric"}
SAVED = (keras.losses.Loss, keras.metrics.Metric)
IMAGES = np.random.default_rng(0).integers(0, 256, (8, 8, 8, 3)).astype("float32")
LABELS = np.arange(8) % 3
OPTIMIZERS, CLIPS = ["AdamW", "SGD", "Muon"], ["clipnorm", "global_clipnorm", "clipvalue"]
FIRST = [*zip(OPTIMIZERS, CLIPS)]


def kept():
    """Returns all losses and metrics that can be saved."""
    known = keras.saving.get_custom_objects().values()
    own = [kind for kind in known if isinstance(kind, type) and kind.__module__.startswith("keras_vit.")]
    return sorted((kind for kind in own if issubclass(kind, SAVED)), key=lambda kind: kind.__name__)


def another(name, parameter, kind):
    """Returns a value of an argument that is not its default."""
    known = {"kind": KINDS.get(kind.__name__), "num_classes": 3, "units": 3, "dtype": "float64", "name": "mine"}
    lists = {key: [1.0, 2.0, 3.0] for key in ("class_weights", "deviation", "weights")}
    value = parameter.default
    return {**known, **lists}.get(name, not value if isinstance(value, bool) else 0.25)


@pytest.mark.parametrize("kind", kept(), ids=lambda kind: kind.__name__)
def test_losses_and_metrics(kind):
    own = {n: p for n, p in inspect.signature(kind).parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD}
    given = {name: another(name, parameter, kind) for name, parameter in own.items()}
    given |= {"reduction": "sum", "dtype": "float64"} if issubclass(kind, keras.losses.Loss) else {}
    made = kind(**given)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(made))
    assert again.get_config() == made.get_config() and again.dtype == made.dtype == "float64"
    for name, value in given.items():
        if hasattr(made, name):
            assert getattr(again, name) == getattr(made, name) == value, name


def small(**more):
    keras.utils.set_random_seed(0)
    return vit("mu/4", image_size=8, depth=2, num_classes=3, **more)


def compiled(kind, **more):
    model = small()
    settings = dict(weight_decay=0.1, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=3)
    settings |= dict(loss_scale_factor=2.0, gradient_accumulation_steps=2, layer_decay=0.7)
    optimizer = getattr(keras_vit.optimizers, kind)(0.01, **settings, **more)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma"])
    loss = classify.classify.ClassLoss(label_smoothing=0.1, class_weights=[1, 2, 3])
    metrics = [keras.metrics.F1Score(threshold=0.3, average="macro"), keras.metrics.TopKCategoricalAccuracy(k=2)]
    model.compile(optimizer, loss, metrics=metrics, jit_compile=False)
    return model


def train(model):
    return model.fit(IMAGES, np.eye(3)[LABELS], batch_size=2, epochs=2, shuffle=False, verbose=0).history["loss"]


@few(1)
@pytest.mark.parametrize("kind, clip", sorted(itertools.product(OPTIMIZERS, CLIPS), key=lambda pair: pair not in FIRST))
def test_training_goes_on_as_without_a_file(kind, clip, tmp_path, eagerly):
    model = compiled(kind, **{clip: 0.01})
    train(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_compile_config() == model.get_compile_config()
    assert loaded.optimizer.factors == model.optimizer.factors
    pairs = zip(model.optimizer.variables, loaded.optimizer.variables, strict=True)
    assert all(np.array_equal(one, other) for one, other in pairs)
    assert train(loaded) == train(model)
    assert all(map(np.array_equal, loaded.get_weights(), model.get_weights()))


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize("kind", ["AdamW", "SGD", "Muon"])
def test_a_model_that_is_saved_before_its_first_step_keeps_what_does_not_decay(kind, by_name, tmp_path):
    model = small()
    optimizer = getattr(keras_vit.optimizers, kind)(0.01, weight_decay=0.5)
    biases = [v for v in model.trainable_variables if v.path.endswith("bias")]
    optimizer.exclude_from_weight_decay(**({"var_names": ["bias"]} if by_name else {"var_list": biases}))
    model.compile(optimizer, "mse", jit_compile=False)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras").optimizer
    optimizer.build(model.trainable_variables)
    assert loaded.undecayed == optimizer.undecayed and len(loaded.undecayed) >= len(biases) > 0
