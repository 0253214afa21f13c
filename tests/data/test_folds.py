import dataclasses
import warnings

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from PIL import Image

from keras_vit import config
from keras_vit.config import Data
from keras_vit.data import folds, sources
from keras_vit.data.memory import Source
from keras_vit.data.readers import records


def source(count, first=0, groups=None, labels=None):
    """Returns images whose only pixel says which they are, of the classes a and b in turn."""
    numbers = np.arange(first, first + count)
    labels = numbers % 2 if labels is None else np.array(labels)
    groups = None if groups is None else np.array(groups)
    return Source(
        numbers.astype("uint8").reshape(-1, 1, 1, 1), {"labels": labels.astype("int32")}, ("a", "b"), groups=groups
    )


def parts(whole, count, targets=("labels",)):
    return [[set(each.tolist()) for each in pair] for pair in folds.divided(whole, count, targets)]


def test_each_image_is_in_one_fold_and_each_class_in_all():
    whole = folds.joined(source(20), source(10, first=20))
    found = parts(whole, 5)
    assert sorted(i for _, own in found for i in own) == list(range(30))
    assert all(others | own == set(range(30)) and not others & own for others, own in found)
    assert all(sum(i % 2 for i in own) == 3 for _, own in found)
    assert found == parts(whole, 5)  # always the same
    assert {len(own) for _, own in parts(whole, 5, targets=())} == {6}
    train, validation = folds.fold(source(20), source(10, first=20), (2, 5), ("labels",))
    assert set(validation.images.ravel().tolist()) == found[1][1] and len(train) == 24
    np.testing.assert_array_equal(validation.labels, validation.images.ravel() % 2)


@pytest.mark.parametrize("targets", [("labels",), ()])
def test_a_group_is_on_one_side(targets):
    """scikit-learn's issue 13621: pictures of one patient in training and validation."""
    whole = folds.joined(source(16, groups=np.arange(16) // 4 % 4), source(8, first=16, groups=[0] * 4 + [9] * 4))
    for others, own in parts(whole, 3, targets):
        assert not {whole.groups[i] for i in others} & {whole.groups[i] for i in own}


def test_what_cannot_be_divided_is_refused():
    rare = source(10, labels=[0] * 8 + [1] * 2)
    alone = source(12, labels=[0] * 10 + [1] * 2, groups=[*range(10), 7, 7])
    for whole, count, message in (
        (rare, 3, "at most as many folds as the images of 'b', 2. Received: 3 folds"),  # ultralytics' issue 25932
        (source(4), 5, "as the images of 'a', 2"),
        (source(6, groups=[0, 0, 1, 1, 1, 0]), 3, "as the groups, 2. Received: 3"),
        (alone, 5, "in two groups or more, and better in 5. Received: 'b'"),
    ):
        with pytest.raises(ValueError, match=message):
            folds.divided(whole, count, ("labels",))
    with pytest.raises(ValueError, match="as the images, 4"):
        folds.divided(source(4), 5, ())
    stream = records.Stream((), ("a", "b"), 1)
    other = dataclasses.replace(source(5, first=20), class_names=("a", "c"))
    wide = Source(np.zeros((5, 2, 2, 1), "uint8"), {"labels": np.zeros(5, "int32")}, ("a", "b"))
    for second, message in (
        (source(5), "no image in common: .* Received: 5 of 5"),
        (stream, "Received: TFRecord files"),
        (other, "must have the same classes"),
        (dataclasses.replace(source(5, first=20), stuff=("a",)), r"same classes, .* and \(\('a', 'b'\), \('a',\)"),
        (source(5, first=20, groups=[1] * 5), "must have the same classes, targets and groups"),
        (wide, r"must have one shape. Received: \(10, 1, 1, 1\) and \(5, 2, 2, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            folds.joined(source(10), second)


def several(rows, groups=None):
    labels = {"multilabels": np.array(rows, "int8")}
    groups = None if groups is None else np.array(groups)
    return dataclasses.replace(source(len(rows)), targets=labels, groups=groups)


def test_each_fold_has_an_image_with_a_label():
    none, one, other = [0, -1], [1, 0], [0, 1]
    rows = [none] * 7 + [one] * 2
    for train, own in parts(several(rows), 2, ("multilabels",)):
        assert len({7, 8} & train) == len({7, 8} & own) == 1
    for whole, count, message in (
        (several(rows), 3, "at most as many folds as the images with a label, 2. Received: 3 folds"),
        (several([none] * 4), 2, "the images with a label, 0"),
        (several(rows, [*range(7), 9, 9]), 3, r"must have a label, .* Received: fold \d of 3 with images without any"),
    ):
        with pytest.raises(ValueError, match=message):
            folds.divided(whole, count, ("multilabels",))
    with pytest.warns(UserWarning, match="All images with 'b' are in one of 3 folds"):
        folds.divided(several([one] * 8 + [other]), 3, ("multilabels",))
    with warnings.catch_warnings(action="error"):
        folds.divided(several([one] * 9), 3, ("multilabels",))  # a class without images is none of a fold's


def test_parts_that_overlap_a_little_are_refused():
    data = Data(train="all[:80%]", fold=(1, 5))
    for validation, message in (("all[70%:]", "180 of 539"), ("all[79%:90%]", "18 of 197")):
        with pytest.raises(ValueError, match=f"no image in common: .* Received: {message}"):
            sources.both(dataclasses.replace(data, validation=validation), ("labels",))
    first, second = source(200), source(56, first=200)
    second.images[0] = 0
    with pytest.raises(ValueError, match="Received: 1 of 56"):
        folds.joined(first, second)
    wide = [Source(np.arange(i, i + 300).astype("uint16").reshape(-1, 1, 1, 1), {}) for i in (0, 298)]
    assert len(folds.joined(*wide)) == 600  # a picture may be there twice


def test_boxes_of_both_have_as_many_rows():
    images = np.arange(4, dtype="uint8").reshape(-1, 1, 1, 1)
    boxes = [np.full((2, rows, 5), rows, "float32") for rows in (1, 3)]
    first, second = (Source(images[2 * i : 2 * i + 2], {"bounding_boxes": each}) for i, each in enumerate(boxes))
    found = folds.joined(first, second).targets["bounding_boxes"]
    assert found.shape == (4, 3, 5) and found[0, :, 4].tolist() == [1, -1, -1] and found[3, 2, 4] == 3


def test_the_folds_of_a_recipe_s_data(tmp_path):
    data = Data(fold=(1, 3))
    train, validation = sources.both(data, ("labels",))
    assert len(train) + len(validation) == len(sources.load(Data(), "all[:80%]"))
    for split, part in ((data.train, train), (data.validation, validation)):
        assert sources.load(data, split).fingerprint() == part.fingerprint()
    assert len(sources.load(data, data.test)) == 359  # as without
    for name in ("train", "val"):  # each with a table of its own
        (tmp_path / name).mkdir()
        rows = ["file_name,age,patient"]
        for i in range(4):
            Image.new("L", (4, 4), i).save(tmp_path / name / f"{name}{i}.png")
            rows.append(f"{name}{i}.png,{i},{'pq'[(i + (name == 'val')) % 2]}")
        (tmp_path / name / "metadata.csv").write_text("\n".join(rows))
    columns = {"numbers": "age", "groups": "patient"}
    data = Data(source=f"folder:{tmp_path}", train="train", validation="val", columns=columns, fold=(1, 2))
    train, validation = sources.both(data, ("numbers",))
    assert len(train) == len(validation) == 4 and not {*train.groups.tolist()} & {*validation.groups.tolist()}
    for wrong in ((0, 2), (3, 2), (1, 1)):
        with pytest.raises(ValueError, match=r"data.fold must be \(number, count\)"):
            config.check_recipe(config.Recipe("a", {"variant": "mu/4"}, data=Data(fold=wrong)))
