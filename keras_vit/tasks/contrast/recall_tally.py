"""Recall of images by texts and of texts by images."""

import numpy as np

from keras_vit.tasks.tally import Tally

PLACES = (1, 5, 10)  # k of recall at k
WAYS = ("text_to_image", "image_to_text")
BLOCK = 2**24  # similarities in one matrix: 64 MB
TIE = 1e-6  # cosines that differ by less are ties, which count against the hit
KEPT = 5000  # images whose thumbnails are kept for figures
SIDE = 64  # pixels of a thumbnail's longer side, up to twice as many
SHOWN = 8  # pairs in a figure


class RecallTally(Tally):
    """Recall at 1, 5 and 10 of images by texts, and of texts by images.

    Equal texts are one query, and all their images are hits; an image searches among the different texts. Ties count
    against the hit, so that equal vectors score 0. `..._chance_at_...` is the recall of a random order. Both fall as
    the number of images grows.

    Vectors are kept in float16, which takes 100 MB for 50,000 pairs of width 512.

    Args:
        text_of: Function from ids, `(length,)`, to a text, for figures; `None` for no figures.
        keep: Whether to keep the data that figures need.
    """

    scores = tuple(f"{way}_recall_at_{k}" for way in WAYS for k in PLACES)

    def __init__(self, text_of=None, keep=False):
        super().__init__(keep and text_of is not None)
        self.text_of = text_of
        self.pictures = []

    def add(self, examples, outputs):
        """Counts a batch.

        Args:
            examples: `"texts"`, ids, `(batch, length)`, and `"images"`, `(batch, height, width, channels)`, 0..255; or
                clips, of which a few frames are shown side by side.
            outputs: Embeddings of each image and its text, `(batch, 2, width)`. Their lengths do not matter.

        Returns:
            The cosine of each image and its text, float32 `(batch,)`; ranks are known only after the last batch.
        """
        outputs = np.asarray(outputs, "float32")
        lengths = np.maximum(np.linalg.norm(outputs, axis=-1, keepdims=True), 1e-12)
        self.kept.append(((outputs / lengths).astype("float16"), np.asarray(examples["texts"])))
        if self.keep and sum(map(len, self.pictures)) < KEPT:
            from keras_vit.plots.clip_figures import in_a_row

            images = in_a_row(np.asarray(examples["images"]))
            step = max(max(images.shape[1:3]) // SIDE, 1)
            small = images[:, ::step, ::step]
            self.pictures.append(np.clip(np.rint(small), 0, 255).astype("uint8"))
        return np.prod(outputs / lengths, axis=1).sum(-1)

    def result(self):
        if not self.kept:
            return {}
        images, texts, _, own = self._arrays()
        chance = [recall_by_chance(len(images), np.bincount(own)), recall_by_chance(len(texts), np.ones(1, int))]
        recall = [[np.mean(ranks < k) for k in PLACES] for ranks in ranks_of(images, texts, own)[:2]]
        return {
            f"{way}_{name}_at_{k}": float(value)
            for name, both in (("recall", recall), ("chance", chance))
            for way, values in zip(WAYS, both)
            for k, value in zip(PLACES, values)
        }

    def figures(self):
        from keras_vit.plots.pairs import plot_pairs

        if not self.pictures:
            return {}
        images, texts, ids, own = self._arrays()
        _, ranks, first = ranks_of(images, texts, own)
        pictures = np.concatenate(self.pictures)
        cosines = np.einsum("ic,ic->i", *(rows.astype("float32") for rows in (images, texts[own])))
        order = np.lexsort((-cosines, ranks))  # best rank first
        order = order[order < len(pictures)]
        count = min(SHOWN, len(order) // 2)
        drawn = {}
        for which, some in (("best", order[:count]), ("worst", order[::-1][:count])):
            if count:
                words = [[self.text_of(ids[i]) for i in found[some]] for found in (own, first)]
                caption = (
                    f"The {which} images: their text, its place among {len(texts):,} texts, and the nearest other."
                )
                drawn[caption] = plot_pairs(pictures[some], *words, ranks[some])
        return drawn

    def _arrays(self):
        """Returns float16 unit vectors of images and of different texts, ids of the texts, and each image's text."""
        vectors, texts = self.arrays()
        ids, places, own = np.unique(texts, axis=0, return_index=True, return_inverse=True)
        return vectors[:, 0], vectors[places, 1], ids, own.ravel()


def ranks_of(images, texts, own):
    """Ranks the hits of texts among images and of images among texts, from 0.

    Args:
        images: Unit vectors of images, `(images, width)`.
        texts: Unit vectors of different texts, `(texts, width)`.
        own: Index of each image's text, integers, `(images,)`.

    Returns:
        The rank of each text's nearest own image, `(texts,)`; the rank of each image's text, `(images,)`; and the index
        of the nearest other text of each image, `(images,)`.
    """
    texts = texts.astype("float32")
    hits = np.concatenate([np.einsum("ic,ic->i", rows, texts[mine]) for rows, mine in _blocks(images, own, len(texts))])
    hits = np.nan_to_num(hits, nan=-np.inf)  # NaN is never a hit
    nearest = np.full(len(texts), -np.inf, "float32")  # largest similarity of each text to its own images
    np.maximum.at(nearest, own, hits)
    before, ranks, first = np.zeros(len(texts), int), [], []
    done = 0
    for rows, mine in _blocks(images, own, len(texts)):
        near = rows @ texts.T  # (block, texts)
        near[np.arange(len(rows)), mine] = -np.inf  # its own
        ranks.append((~(near < hits[done : done + len(rows), None] - TIE)).sum(1))  # NaN counts as nearer
        before += (~(near < nearest - TIE)).sum(0)
        first.append(near.argmax(1))
        done += len(rows)
    return before, np.concatenate(ranks), np.concatenate(first)


def _blocks(images, own, texts):
    """Yields blocks of image vectors, float32 `(block, width)`, with their text indices, `(block,)`."""
    size = max(BLOCK // texts, 1)
    for start in range(0, len(images), size):
        yield images[start : start + size].astype("float32"), own[start : start + size]


def recall_by_chance(candidates, hits):
    """Returns the recall of a random order at each of `PLACES`.

    Args:
        candidates: Number of candidates.
        hits: Number of hits among them for each query, `(queries,)`.
    """
    missed = [
        np.prod([np.maximum(candidates - hits - j, 0) / max(candidates - j, 1) for j in range(k)], axis=0)
        for k in PLACES
    ]  # probability that the first k have no hit
    return [1 - share.mean() for share in missed]
