import json

import pytest

from keras_vit.checkpoints.files.pipeline import folders, is_pipeline


def test_which_folders_are_needed(tmp_path):
    assert not is_pipeline(tmp_path)
    index = {"_class_name": "DiTPipeline", "transformer": [], "vae": [], "scheduler": []}
    (tmp_path / "model_index.json").write_text(json.dumps(index))
    assert is_pipeline(tmp_path) and is_pipeline(str(tmp_path))
    assert folders(tmp_path, None, "a") == ("transformer", "vae")
    assert folders(tmp_path, "decoder", "a") == folders(tmp_path, "encoder", "a") == ("vae",)


def test_other_models(tmp_path):
    (tmp_path / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline", "vae": []}))
    assert folders(tmp_path, "decoder", "a") == ("vae",)
    with pytest.raises(ValueError, match="those of a DiTPipeline are read.*Received: 'a', a StableDiffusionPipeline"):
        folders(tmp_path, None, "a")
    (tmp_path / "model_index.json").write_text("{}")
    with pytest.raises(ValueError, match="'a' must have 'vae' in its model_index.json. Received: "):
        folders(tmp_path, "decoder", "a")
