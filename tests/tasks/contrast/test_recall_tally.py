import numpy as np
import pytest

from keras_vit.tasks.contrast import recall_tally
from keras_vit.tasks.contrast.recall_tally import PLACES, RecallTally, recall_by_chance

RNG = np.random.default_rng(0)
COUNT = 60
IMAGES, TEXTS = RNG.normal(size=(2, COUNT, 8))
IDS = RNG.integers(0, 40, (COUNT, 1)) * [1, 2, 0]  # about 30 different texts
TEXTS = TEXTS[np.unique(IDS, axis=0, return_inverse=True)[1].ravel()] + 0.0  # equal texts have equal vectors
NOISY = TEXTS + 1.2 * IMAGES
PICTURES = RNG.uniform(0, 255, (COUNT, 8, 8, 3)).astype("float32")


def filled(images, texts, ids=IDS, lengths=(1.0, 1.0), **more):
    tally = RecallTally(**more)
    outputs = np.stack([lengths[0] * images, lengths[1] * texts], axis=1)
    parts = [
        tally.add({"images": PICTURES[part], "texts": ids[part]}, outputs[part])
        for part in (slice(25), slice(25, None))
    ]
    return tally, np.concatenate(parts)


def by_hand(images, texts, ids):
    """Recall by loops: one query a different text, and each different text once among the answers."""
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (images, texts)]
    keys = [tuple(row) for row in ids]
    different = list(dict.fromkeys(keys))
    vectors = np.stack([unit[1][keys.index(key)] for key in different])
    text_ranks, image_ranks = [], []
    for key, vector in zip(different, vectors):
        order = np.argsort(-(unit[0] @ vector))
        text_ranks.append(min(place for place, i in enumerate(order) if keys[i] == key))
    for i, key in enumerate(keys):
        order = np.argsort(-(vectors @ unit[0][i]))
        image_ranks.append(list(order).index(different.index(key)))
    return {
        f"{way}_recall_at_{k}": np.mean(np.array(ranks) < k)
        for way, ranks in (("text_to_image", text_ranks), ("image_to_text", image_ranks))
        for k in PLACES
    }


@pytest.mark.parametrize("block", [2**24, 100])
def test_recall_is_the_loop_s_whatever_the_lengths_and_the_blocks(block, monkeypatch):
    monkeypatch.setattr(recall_tally, "BLOCK", block)
    tally, scores = filled(NOISY, TEXTS, lengths=(20.0, 0.1))
    found = tally.result()
    expected = by_hand(NOISY, TEXTS, IDS)
    assert {name: found[name] for name in tally.scores} == pytest.approx(expected)
    assert 0.2 < found["image_to_text_recall_at_1"] < 1 and tally.result() == found
    cosines = np.einsum("ic,ic->i", NOISY, TEXTS) / np.linalg.norm(NOISY, axis=1) / np.linalg.norm(TEXTS, axis=1)
    np.testing.assert_allclose(scores, cosines, atol=1e-6)


def test_perfect_vectors_find_all_and_equal_or_broken_ones_nothing():
    for vectors, recall in (
        (TEXTS, 1),
        (np.ones_like(TEXTS), 0),
        (np.zeros_like(TEXTS), 0),
        (np.full_like(TEXTS, np.nan), 0),
    ):
        found = filled(vectors, vectors)[0].result()
        assert {found[name] for name in RecallTally.scores} == {recall}
    one_text = filled(IMAGES, np.ones_like(TEXTS), np.ones((COUNT, 2), int))[0].result()
    assert all(one_text[name] == 1 for name in one_text)  # by chance too
    assert RecallTally().result() == {} == RecallTally().figures()


def test_chance_is_that_of_random_orders():
    hits = np.array([1, 3, 8])
    found = recall_by_chance(20, hits)
    drawn = [[(RNG.permutation(20)[:k] < m).any() for _ in range(4000) for m in hits] for k in PLACES]
    np.testing.assert_allclose(found, [np.mean(one) for one in drawn], atol=0.02)
    assert recall_by_chance(200, np.ones(1, int)) == pytest.approx([0.005, 0.025, 0.05])
    assert recall_by_chance(3, np.array([1])) == pytest.approx([1 / 3, 1, 1])
    scores = filled(IMAGES, TEXTS)[0].result()
    assert scores["image_to_text_chance_at_5"] == pytest.approx(5 / len(np.unique(IDS, axis=0)))


def test_figures_show_the_best_and_the_worst_with_their_texts():
    tally, _ = filled(NOISY, TEXTS, text_of=lambda ids: f"text {ids[0]}", keep=True)
    best, worst = tally.figures().values()
    titles = [[" ".join(axis.get_title("left").split()) for axis in figure.axes] for figure in (best, worst)]
    assert all("(1)" in title and "then: text" in title for title in titles[0])
    assert all("(1)" not in title and "first: text" in title for title in titles[1])
    assert filled(NOISY, TEXTS, keep=True)[0].figures() == {}
