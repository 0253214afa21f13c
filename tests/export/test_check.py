import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import vit
from keras_vit.export import check


@pytest.fixture
def model():
    model = vit("mu/4", image_size=8, channels=1, num_classes=3)
    model.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(32, 3)))
    return model


def test_a_faithful_runtime_passes(model, tmp_path):
    images = check.sample(model, None)
    report = check.report(tmp_path, model, images, lambda x: np.asarray(model(x)), {"ADD": 2})
    assert report.max_abs_diff == 0 and report.agreement == 1 and report.ms > 0
    assert "2 operators: ADD 2" in str(report)


@pytest.mark.parametrize("fault", [lambda y: y + 0.1, lambda y: y * np.nan, lambda y: -y])
def test_other_logits_are_an_error(model, tmp_path, fault):
    with pytest.raises(RuntimeError, match="gives other logits"):
        check.report(tmp_path, model, check.sample(model, None), lambda x: fault(np.asarray(model(x))), {})


def test_a_flex_operator_is_an_error(model, tmp_path):
    with pytest.raises(RuntimeError, match="FlexErf"):
        check.report(tmp_path, model, check.sample(model, None), None, {"ADD": 1, "FlexErf": 2})


def test_images_of_the_caller_are_used_and_checked(model):
    images = np.full((2, 8, 8, 1), 7, "uint8")
    np.testing.assert_array_equal(check.sample(model, images), images)
    with pytest.raises(ValueError, match=r"shape=\(2, 9, 8, 1\)"):
        check.sample(model, np.zeros((2, 9, 8, 1)))
