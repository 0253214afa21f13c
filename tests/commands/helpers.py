"""What tests of commands share: the smallest training, and a command line in this process."""

import pytest

from keras_vit.__main__ import main

SMALL = [
    "optim.epochs=1",
    "optim.warmup_epochs=0",
    "data.limit=64",
    "model.width=16",
    "model.depth=1",
    "model.mlp_dim=32",
    "optim.xla=False",
]


def run(*words, status=0, leaves=False):
    if status or leaves:
        with pytest.raises(SystemExit) as stop:
            main(list(words))
        assert stop.value.code == status
    else:
        main(list(words))
