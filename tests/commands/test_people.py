import json

import numpy as np
import pytest
from PIL import Image

from keras_vit.commands.people import of_images
from tests.commands.helpers import run as command
from tests.poses import small


@pytest.fixture
def people(tmp_path):
    """A folder with two images, a model, and the boxes of a detector in the first."""
    (tmp_path / "photos").mkdir()
    for name in ("a.png", "b.png"):
        pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), "uint8")
        Image.fromarray(pixels).save(tmp_path / "photos" / name)
    small().save(tmp_path / "pose.keras")
    entries = [{"image_id": "a.png", "category": "person", "bbox": [5, 5, 20, 30], "score": 0.9}] * 2
    entries += [{"image_id": "a.png", "category": "dog", "bbox": [5, 5, 20, 30], "score": 0.9}]
    (tmp_path / "boxes.json").write_text(json.dumps(entries))
    return tmp_path


def test_poses(people, capsys):
    given = ("poses", str(people / "photos"), "--model", str(people / "pose.keras"))
    boxes = ("--boxes", str(people / "boxes.json"))
    files = ("--json", str(people / "poses.json"), "--to", str(people / "drawn"))
    command(*given, *boxes, *files)
    printed = capsys.readouterr().out
    assert "a.png: 2 people, scores " in printed and "b.png: 0 people" in printed
    found = json.loads((people / "poses.json").read_text())
    assert len(found) == 2 and all(len(row["keypoints"]) == 51 and row["image_id"] == "a.png" for row in found)
    with Image.open(people / "drawn" / "a.png") as image:
        assert image.size == (60, 40)
    command(*given, *boxes, *files, status=2)
    assert "exists" in capsys.readouterr().err
    command(*given, *boxes, "--json", str(people / "flipped.json"), "--flip-test")
    assert json.loads((people / "flipped.json").read_text())[0]["keypoints"] != found[0]["keypoints"]
    command(*given, status=2)
    assert "--boxes must name a file of boxes" in capsys.readouterr().err


def test_files_without_boxes_are_refused(tmp_path):
    path = tmp_path / "boxes.json"
    for text, pattern in (
        ("{", "must be a JSON file of boxes"),
        ("{}", "must be a list of boxes"),
        ('[{"bbox": [1, 2, 3, 4]}]', "the image's file name as 'image_id'"),
        ('[{"image_id": "a.png"}]', "and a 'bbox'"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=pattern):
            of_images(path)
