import re

import pytest

from keras_vit import config

SEGMENT = config.Segment(classes=("background", "square"))


def recipe(task, **options):
    model = {"image_size": 32, "patch_size": 16, "depth": 1, "width": 16, "num_heads": 2, "mlp_dim": 16}
    data = config.Data(**{"source": "folder:x", "crops_per_image": 3, **options})
    return config.Recipe("x", model, task=task, data=data)


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (config.Regress(names=("a",)), {}, "data.crops_per_image is for images alone, and for labels, boxes and masks"),
        (config.Depth(), {}, "Received: Depth, a task of depths"),
        (config.Segment(kind="instance"), {}, "Received: Segment, a task of instance masks"),
        (config.ClassifyClips(frames=2), {}, "Received: ClassifyClips, a task of clips"),
        (config.Classify(), {"resize": 40}, "data.resize must be None"),
        (config.Classify(), {"crops_balanced": True}, "data.crops_balanced is for masks and boxes"),
        (SEGMENT, {"crops_empty": 0.5}, "data.crops_empty is for boxes"),
        (SEGMENT, {"crops_visible": 0.3}, "data.crops_visible is for boxes"),
        (SEGMENT, {"crops_size": (0, 4)}, "data.crops_size"),
        (SEGMENT, {"crops_size": 0}, "crops_size must be at least 1"),
    ],
)
def test_what_has_no_crops_is_refused_before_any_file_is_read(task, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        config.check_recipe(recipe(task, **options))


def test_options_of_crops_need_crops():
    with pytest.raises(ValueError, match=r"Data.crops_balanced needs data.crops_per_image. Received"):
        config.Data(crops_balanced=True)


def test_what_has_crops():
    for task in (config.Classify(), config.Classify(multilabel=True), config.Pretrain(), SEGMENT, config.Detect()):
        config.check_recipe(recipe(task))
    config.check_recipe(recipe(SEGMENT, crops_size=(64, 48), crops_balanced=True))
