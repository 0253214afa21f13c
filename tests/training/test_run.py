import pytest

pytest.importorskip("tensorflow")

from keras_vit.training.devices import Place
from keras_vit.training.run import Run
from tests.training.small import RECIPE, SOURCE, tiny


def test_a_run_gives_the_rest_of_its_batches(tmp_path):
    run = Run(RECIPE, tiny(), SOURCE, SOURCE, tmp_path, epoch=1, step=2)
    assert run.steps == 5 and run.training_batches().cardinality() == 2 * 5 - 2
    assert run.progress == {"epoch": 1, "step": 2, "history": [], "best": -1.0}


@pytest.mark.parametrize("even, parts", [(False, 2), (True, 3)])
def test_validation_sees_each_image_once(tmp_path, even, parts):
    run = Run(RECIPE, tiny(), SOURCE, SOURCE.take(slice(0, 12)), tmp_path, place=Place(even=even))
    batches = [[part.numpy() for part in batch] for batch in run.validation_batches()]
    assert [len(batch) for batch in batches] == [parts] * 2
    counted = [int((batch[2] > 0).sum()) if even else len(batch[0]) for batch in batches]
    assert counted == [8, 4]
