"""Reads images ahead of a model, several at once."""

import itertools
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from keras_vit.utils.cores import cores

AHEAD = 2  # batches that are read while the model runs


class Read(NamedTuple):
    """A batch of images."""

    images: list  # as they were given
    pixels: dict  # of those that could be read, by position
    errors: dict  # of the others, by position

    def __len__(self):
        return len(self.images)


def batches(read, images, count, ahead=AHEAD):
    """Reads images by as many threads as there are cores, and yields a `Read` for each `count` of them, in order.

    Memory holds the pixels of `ahead` batches and of the one that was yielded, however many images there are.

    Args:
        read: Function from an image to its pixels; a ValueError or OSError of it is a fault of that image.
        images: Iterable of what `read` takes.
        count: Images in a batch.
        ahead: Batches that are being read or wait; with 1 a batch is read when it is asked for.
    """
    pool, waiting, source = ThreadPoolExecutor(cores()), deque(), iter(images)
    try:
        while True:
            while len(waiting) < ahead and (batch := list(itertools.islice(source, count))):
                waiting.append((batch, [pool.submit(read, image) for image in batch]))
            if not waiting:
                return
            yield _gathered(*waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for the rest


def _gathered(images, reads):
    pixels, errors = {}, {}
    for i, read in enumerate(reads):
        try:
            pixels[i] = read.result()
        except (ValueError, OSError) as error:
            errors[i] = error
    return Read(images, pixels, errors)
