import keras_vit
from keras_vit.models.inputs import fed, image_shape
from tests.towers import two_towers


def test_the_images_of_a_model():
    assert image_shape(keras_vit.vit("mu/4", image_size=(8, 12), channels=1)) == (8, 12, 1)
    assert image_shape(two_towers()) == (12, 8, 3)


def test_a_model_is_called_with_what_it_takes():
    examples = {"images": 1, "texts": 2, "labels": 3}
    assert fed(examples, ("images",)) == 1 and fed(examples, ("images", "texts")) == {"images": 1, "texts": 2}
