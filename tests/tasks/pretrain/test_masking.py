import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from keras_vit.tasks import Pretrain
from keras_vit.tasks.pretrain.masked import MaskedAutoencoder
from keras_vit.tasks.pretrain.masking import Masking

TASK = Pretrain(decoder_width=16, decoder_depth=1, decoder_heads=2, mask_ratio=0.5, normalize=False)


def test_the_learner_has_the_options_of_the_task():
    rules, images = Masking(TASK), np.zeros((2, 8, 8, 1), "float32")
    learner = rules.learner(TASK.model(variant="mu/2", image_size=8, channels=1))
    assert isinstance(learner, MaskedAutoencoder) and learner.mask_ratio == 0.5 and not learner.normalize
    assert learner.decoder.width == 16 and len(learner.decoder.blocks) == 1
    masked, again = rules.viewer(learner)(images)[0]
    assert masked.shape == again.shape == images.shape[1:]
    assert not rules.compares and rules.on(None) is TASK and rules.callbacks(None) == []
    x, y = rules.batch({"images": tf.constant(images)}, None, tf.constant([0, 1], "int64"))
    assert x["images"] is y and x["noise"].shape == (2, 16)
