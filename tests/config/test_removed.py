import pytest

from keras_vit import config, load_recipe
from keras_vit.training import rundir


@pytest.mark.parametrize(
    "name, mark",
    [
        ("mnist_dit", "996d4aaf4e1df3d6d9f23c2bd720319d"),
        ("superres_x2", "ffdc2f92334092e63194e88181021e2d"),
        ("easy_vqa_captions", "60de2ca0ffd30c17eaa9c75ea73ed955"),
        ("emoji", "684d78d8a665c5bbfa01d885deee4ee1"),
        ("blood_cells", "8d6f95adcc12554511894a6bb07c2885"),
        ("easy_vqa", "cd487290aa7e9ebc12fc02340c76cb42"),
    ],
)
def test_runs_of_a_version_with_fewer_options_are_the_same_runs(name, mark):
    recipe = load_recipe(name)
    assert rundir.mark(recipe, {"train": "1"}) == mark
    changed = {"mnist_dit": {"task.shift": 2.0}, "easy_vqa_captions": {"task.start": "runs/a", "task.text": {}}}
    if name in changed:
        assert rundir.mark(config.override(recipe, changed[name]), {"train": "1"}) != mark
