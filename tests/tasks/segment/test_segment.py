"""What kinds of `Segment` share; their rules are tested in `test_semantic.py` and `test_objects.py`."""

import dataclasses

from keras_vit.config import Data, Recipe
from keras_vit.tasks.segment.segment import Segment
from tests.tasks.segment.test_objects import CLASSES, SMALL, task


def test_files_of_options_name_them_only_where_they_are():
    from keras_vit.config import plain

    recipe = Recipe(name="a", task=Segment(classes=CLASSES), model=SMALL, data=Data(source="digits"))
    assert not {"kind_option", "stuff", "score", "mask_size"} & set(plain.to_dict(recipe)["task"])
    recipe = dataclasses.replace(recipe, task=task("panoptic", stuff=("dog",)))
    values = plain.to_dict(recipe)
    assert values["task"]["kind"] == "Segment" and values["task"]["kind_option"] == "panoptic"
    assert plain.from_dict(values) == recipe
