import keras
import pytest

from keras_vit import config
from keras_vit.config import Caption, Classify, Contrast, Data, Recipe
from tests.small import smoke

RECIPE = Recipe(name="x", model={"image_size": (8, 12), "num_classes": 3})


def test_a_recipe_that_fits_together_is_returned():
    assert config.check_recipe(RECIPE) is RECIPE


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"model.widht": 3}, "'widht'. Did you mean 'width'"),
        ({"model.stem": keras.layers.Conv2D(4, 3)}, "only JSON values"),
        ({"model.value_range": (0, 4095)}, r"pixels is data.value_range, .* Received: model.value_range=\(0, 4095\)"),
        ({"model.channels": 4, "augment.jitter": 0.1}, "1 or 3 channels. Received: channels=4"),
        ({"model.channels": 4, "augment.randaugment": 1}, "1 or 3 channels. Received: channels=4"),
        ({"data.resize": 7}, "data.resize must be at least 8, the shorter side of image_size. Received: 7"),
        ({"data.resize": (8, 11)}, r"data.resize must be at least the image_size, \(8, 12\). Received: \(8, 11\)"),
        ({"data.resize": (12, 12)}, r"enlarge both sides of image_size, \(8, 12\), alike. Received: \(12, 12\)"),
        ({"task.metrics": ("partial_auc",)}, "'partial_auc' is for two classes. Received: 3 classes"),
        ({"model.num_classes": 1}, "two classes or more. Received: model.num_classes=1"),
    ],
)
def test_contradictions_are_named(changes, said):
    with pytest.raises(ValueError, match=said):
        config.check_recipe(config.override(RECIPE, changes))


def test_weights_need_a_size():
    with pytest.raises(ValueError, match="model.weights must set image_size too"):
        config.check_recipe(Recipe(name="x", model={"num_classes": 3, "weights": "a.npz"}))


@pytest.mark.parametrize("task", [Caption(start="run"), Contrast(start="run")])
def test_images_of_a_model_to_start_from_are_resized_to_a_stated_size(task):
    asked = Recipe(name="x", task=task, model={}, data=Data(resize=256))
    with pytest.raises(ValueError, match="task.start needs model.image_size, .* Received: data.resize=256, model={}"):
        config.check_recipe(asked)
    assert config.check_recipe(config.override(asked, {"model.image_size": 240, "data.resize": 240}))


def test_a_head_is_of_weights():
    model = {"image_size": 8, "num_classes": 3, "head": "new"}
    with_head = Recipe(name="x", model={**model, "weights": "a.npz"})
    assert config.check_recipe(with_head) is with_head and not {"head", "weights"} & {*smoke(with_head).model}
    with pytest.raises(ValueError, match="no argument 'head'"):
        config.check_recipe(Recipe(name="x", model=model))


def test_the_task_is_asked():
    class Refusing(Classify):
        def check(self, recipe):
            raise ValueError(f"Refuses {recipe.name}")

    with pytest.raises(ValueError, match="Refuses x"):
        config.check_recipe(Recipe(name="x", model={}, task=Refusing()))
