import numpy as np

from keras_vit.inspecting.pictures import NONE, Pictures


def test_labels_splits_and_parts():
    pictures = Pictures(["a", "b", "c"], ["x/a", "x/b", "x/c"]).labeled(["cat", None, ""]).divided(["b", "a", None])
    assert [pictures.label(i) for i in range(3)] == ["cat", "", ""] and pictures.labels.tolist() == [0, NONE, NONE]
    part = pictures.part([0, 2], "are bad")
    assert part.names == ["a", "c"] and part.images == ["x/a", "x/c"] and part.rows.tolist() == [0, 2]
    assert [part.split(i) for i in range(2)] == ["b", ""] and pictures.part([0, 1, 2], "") is pictures
    assert part.left_out == ("1 pictures are bad",) and part.part([1], "are worse").rows.tolist() == [2]
    assert pictures.labeled([None] * 3).labels is None


def test_ranks_go_from_training_to_test():
    texts = ["testing", "train", "valid", None, "dev", "2024"]
    ranks = Pictures([*"abcdef"], []).divided(texts).ranks
    assert [texts[i] for i in np.argsort(ranks)] == [None, "train", "2024", "dev", "valid", "testing"]
    assert ranks[3] == NONE and not Pictures(["a"], []).ranks.any()
