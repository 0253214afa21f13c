import pytest

pytest.importorskip("tensorflow")

from keras_vit import files
from keras_vit.training import saving


def test_what_is_not_whole_yet_has_a_name_that_is_swept(whole, tmp_path, monkeypatch):
    model, *_ = whole

    class Killed:
        def save(self, path):
            path.with_name(path.name + ".left").write_text("half")
            raise OSError("killed")

    monkeypatch.setattr(saving.finetuning, "plain_copy", lambda model, values: Killed())
    with pytest.raises(OSError, match="killed"):
        saving.save_trained(model, model, tmp_path / "best.keras")
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(files.UNFINISHED)
