"""Pairs of neighboring pieces in words, for learning a table: how often each occurs, and where."""

import collections
import heapq

from keras_vit.text.engines import INSIDE

GONE = ""  # a piece that became the end of the one before it


class Pairs:
    """Words as chains of pieces, first of letters, whose neighbors are joined pair by pair.

    A step costs as much as the pair has places, so that a table is learned in time that grows with the texts, not with
    texts times rows.

    Args:
        counts: Times that each word occurs, by word.

    Attributes:
        pieces: The pieces of all words, one after the other; those inside a word begin with `##`.
        times: Times that each pair of neighbors occurs, by pair.
    """

    def __init__(self, counts):
        self.pieces = []
        self.times = collections.Counter()
        self._weights = []  # times that the word of each piece occurs
        self._before = []  # place of the piece before each, or `None` at the beginning of a word
        self._after = []
        self._places = collections.defaultdict(list)  # of the first of two pieces, also where they are no more
        for word, count in counts.items():
            first, last = len(self.pieces), len(self.pieces) + len(word) - 1
            self.pieces += [word[0], *(INSIDE + letter for letter in word[1:])]
            self._weights += [count] * len(word)
            self._before += [None, *range(first, last)]
            self._after += [*range(first + 1, last + 1), None]
            for place in range(first, last):
                self._add(place)
        self._queue = [(-count, pair) for pair, count in self.times.items()]
        heapq.heapify(self._queue)

    def most(self):
        """Returns the most frequent pair, of several the first by its pieces; `None` without any."""
        while self._queue and -self._queue[0][0] != self.times.get(self._queue[0][1], 0):
            heapq.heappop(self._queue)  # the pair was counted again since
        return self._queue[0][1] if self._queue else None

    def join(self, pair):
        """Makes one piece of a pair wherever it stands, from the left, and returns this piece."""
        joined, changed = pair[0] + pair[1].removeprefix(INSIDE), {pair}
        for place in sorted(self._places.pop(pair)):
            next = self._after[place]
            if next is None or (self.pieces[place], self.pieces[next]) != pair:
                continue
            before, after = self._before[place], self._after[next]
            changed |= {self._drop(each) for each in (before, place, next) if each is not None} - {None}
            self.pieces[place], self.pieces[next] = joined, GONE
            self._after[place] = after
            if after is not None:
                self._before[after] = place
            changed |= {self._add(each) for each in (before, place) if each is not None} - {None}
        for each in changed:
            if self.times[each] > 0:
                heapq.heappush(self._queue, (-self.times[each], each))
            else:
                del self.times[each]
        return joined

    def _pair(self, place):
        after = self._after[place]
        return None if after is None else (self.pieces[place], self.pieces[after])

    def _add(self, place):
        """Counts the pair that begins at a place, and returns it, if there is one."""
        if (pair := self._pair(place)) is not None:
            self.times[pair] += self._weights[place]
            self._places[pair].append(place)
        return pair

    def _drop(self, place):
        """Counts the pair that begins at a place no more, and returns it, if there is one."""
        if (pair := self._pair(place)) is not None:
            self.times[pair] -= self._weights[place]
        return pair
