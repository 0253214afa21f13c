import os
import pathlib

import keras_vit
from keras_vit.utils.cores import cores


def test_only_cores_that_the_process_may_use_are_counted(monkeypatch):
    if hasattr(os, "sched_setaffinity"):
        usable = os.sched_getaffinity(0)
        assert cores() == len(usable)
        try:
            os.sched_setaffinity(0, [min(usable)])
            assert cores() == 1
        finally:
            os.sched_setaffinity(0, usable)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 96)
    assert cores() == 96


def test_nothing_else_counts_those_of_the_machine():
    texts = {path.name: path.read_text() for path in pathlib.Path(keras_vit.__file__).parent.rglob("*.py")}
    assert [name for name, text in texts.items() if "cpu_count" in text] == ["cores.py"]
