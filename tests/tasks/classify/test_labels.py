import numpy as np

from keras_vit.models.kinds import KINDS
from keras_vit.tasks import Classify
from keras_vit.tasks.classify.labels import Labels


def test_both_kinds_of_labels_have_all_rules():
    """What the base leaves open, each kind says; and no kind has a rule that the base lacks."""
    public = {name for name in dir(Labels) if not name.startswith("_")} | {"task"}
    for task in (Classify(), Classify(multilabel=True)):
        rules = task.labels
        assert isinstance(rules, Labels) and rules.task is task and rules.gives in KINDS
        assert {name for name in dir(rules) if not name.startswith("_")} == public
        for name in ("check", "compiled", "batch", "tally", "probabilities", "caption"):
            assert getattr(type(rules), name) is not getattr(Labels, name)


def test_the_usual_order_is_that_of_the_probabilities():
    assert Classify().labels.order(np.array([0.2, 0.5, 0.2])).tolist() == [1, 0, 2]
    assert Classify().thresholds_by_name() == {} and Classify().labels.columns == {}
