"""Work on many files, several at once, with a line that says how far it is."""

import itertools
from concurrent.futures import ThreadPoolExecutor

from keras_vit.utils.cores import cores
from keras_vit.utils.progress import counted

AT_ONCE = 4096  # parts that wait for a thread: each takes memory


def each(function, items, what="checking images"):
    """Returns what a function returns for each of many files, in order; several are read at once.

    What takes more than two seconds shows on standard error how far it is.
    """
    parts = in_parts(lambda part: [function(item) for item in part], list(items), 1, what)
    return list(itertools.chain.from_iterable(parts))


def in_parts(function, items, count, what, threads=None):
    """Yields what a function returns for each `count` of many items, in order: a list, as long.

    Args:
        function: Function of a part of the items.
        items: A sequence.
        count: Number of items in a part.
        what: What the line of progress begins with.
        threads: How many there are; as many as processors if `None`.
    """
    starts, pool = range(0, len(items), count), ThreadPoolExecutor(threads or cores())
    parts = (starts[first : first + AT_ONCE] for first in range(0, len(starts), AT_ONCE))

    def of_part(start):
        return function(items[start : start + count])

    try:
        results = (result for part in parts for result in pool.map(of_part, part))
        yield from counted(results, len(items), what, after=2.0)
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for the rest
