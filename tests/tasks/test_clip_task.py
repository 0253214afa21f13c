import numpy as np
import pytest

import keras_vit
from keras_vit.config import Augment, ClassifyClips, Data, PretrainClips, Recipe, check_recipe
from keras_vit.tasks.clip_task import ClipTask
from keras_vit.tasks.pretrain.pretrain import Pretrain

MODEL = dict(variant=None, image_size=8, patch_size=4, width=8, depth=1, num_heads=2)
TASKS = {ClassifyClips: {"num_classes": 3}, PretrainClips: {"pooling": "gap"}}


@pytest.mark.parametrize("kind", TASKS)
def test_what_tasks_of_clips_have_in_common(kind):
    task, more = kind(frames=4, stride=3), {**MODEL, **TASKS[kind]}
    assert issubclass(kind, ClipTask) and (task.clips.frames, task.clips.stride, task.clips.segments) == (4, 3, False)
    assert task.data_shape((4, 8, 12, 3)) == task.data_shape((8, 12, 3)) == (8, 12, 12)
    made = Recipe(name="clips", task=task, model=more, data=Data(source="folder:clips"))
    assert check_recipe(made) is not None and keras_vit.from_recipe(made).input_shape == (None, 4, 8, 8, 3)
    for changed, text in (
        (dict(model={**more, "rotary": "dinov3"}), "rotary"),
        (dict(augment=Augment(randaugment=2)), "augment.randaugment is for images, not for clips"),
        (dict(task=kind(frames=4, stride=2, sampling="segments")), "Segments divide a whole clip"),
    ):
        with pytest.raises(ValueError, match=text):
            check_recipe(Recipe(**{**dict(name="clips", task=task, model=more, data=Data(source="f")), **changed}))


def test_a_picture_has_four_frames_at_most():
    assert PretrainClips().picture(np.zeros((16, 8, 8, 1)), np.zeros(2)).shape == (8, 4 * 8 + 3, 3)
    assert not issubclass(Pretrain, ClipTask) and Pretrain().clips is None
