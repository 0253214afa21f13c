import keras
import pytest

from keras_vit.layers.own_config import own_config

pytestmark = pytest.mark.backend


class Owner(keras.layers.Layer):
    def __init__(self, count, *, switch=True, **kwargs):
        super().__init__(**kwargs)
        self.count, self.switch = count, switch

    def get_config(self):
        return {**super().get_config(), **own_config(self, Owner)}


class Heir(Owner):
    def __init__(self, **kwargs):
        super().__init__(3, **kwargs)


def test_it_holds_what_the_class_itself_takes():
    assert own_config(Owner(2, switch=False, name="mine"), Owner) == {"count": 2, "switch": False}
    assert own_config(Heir(), Owner) == {"count": 3, "switch": True}
    assert Heir(name="mine").get_config()["name"] == "mine"
