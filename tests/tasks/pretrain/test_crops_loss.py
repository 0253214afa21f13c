import numpy as np
import pytest

from keras_vit.tasks.pretrain.crops_loss import CropsLoss, metrics

pytestmark = pytest.mark.backend
OUTPUTS = np.float32([[1, 2, 5], [3, 6, 5]])


def test_columns():
    assert float(CropsLoss()(np.zeros((2, 1)), OUTPUTS)) == 2
    assert float(CropsLoss()(np.zeros((2, 1)), OUTPUTS, sample_weight=np.float32([1, 0]))) == 0.5  # as all of Keras's
    for metric, value in zip(metrics(), (4, 5), strict=True):
        metric.update_state(np.zeros((2, 1)), OUTPUTS)
        assert float(metric.result()) == value
    assert [metric.name for metric in metrics()] == ["teacher_entropy", "mean_entropy"]
