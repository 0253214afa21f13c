"""Values of a sweep: lists and ranges of options, in all combinations or drawn at random."""

import hashlib
import itertools
import math
import re
from typing import NamedTuple

import numpy as np

from keras_vit.config.changes import literal, split
from keras_vit.utils import checks

SEED = 0  # fixed: a longer sweep begins with the draws of a shorter one
TRIES = 1000  # attempts for each draw to differ from earlier draws
MOST = 10_000  # largest number of runs
LONGEST = 120  # longest name of a directory, in characters
ENDS = {"(": ")", "[": "]", "{": "}"}


class Range(NamedTuple):
    """A range of numbers, both ends included."""

    low: float
    high: float

    def draw(self, random):
        """Draws an integer between integers; else a float of three digits, log-uniform, or uniform if `low` <= 0."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return int(random.integers(self.low, self.high + 1))
        if self.low > 0:
            number = math.exp(random.uniform(math.log(self.low), math.log(self.high)))
        else:
            number = random.uniform(self.low, self.high)
        return min(max(float(f"{number:.3g}"), self.low), self.high)


def read(words):
    """Parses words such as `"model.depth=6,8"` into a dictionary from names to lists of values or `Range`s."""
    return {name: choices(name, text) for name, text in split(words).items()}


def choices(name, value):
    """Returns the values of an option in a sweep, a list or a `Range`.

    Args:
        name: Dotted name of the option.
        value: A list of values, one value, or text as on the command line: values separated by commas (commas in
            brackets or quotes do not separate), or a range, `"1e-5..1e-3"`.

    Raises:
        ValueError: For an empty list, or a range whose first number is not below the second.
    """
    if isinstance(value, Range):
        return value
    values = value if isinstance(value, list) else [value]
    if isinstance(value, str):
        if (found := _range(name, value)) is not None:
            return found
        values = [literal(piece.strip()) for piece in pieces(value)]
    if not values or any(isinstance(each, str) and not each for each in values):
        raise ValueError(f"A sweep must have values for each option. Received: {name}={checks.shown(value)}")
    return list({repr(each): each for each in values}.values())


def _range(name, text):
    ends = [_number(end) for end in text.split("..")]
    if len(ends) != 2 or None in ends:
        return None
    if not ends[0] < ends[1]:
        raise ValueError(f"A range must be low..high, such as 1e-5..1e-3. Received: {name}={text}")
    return Range(*ends)


def _number(text):
    number = literal(text.strip())
    return number if type(number) in (int, float) else None


def pieces(text):
    """Splits a text at commas outside brackets and quotes."""
    parts, inside = [""], []
    for sign in text:
        if inside and sign == inside[-1]:
            inside.pop()
        elif sign in "\"'" or (sign in ENDS and not (inside and inside[-1] in "\"'")):
            inside.append(ENDS.get(sign, sign))
        if sign == "," and not inside:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def combinations(options, draw=None):
    """Returns the changes of each run of a sweep: a list of dictionaries from dotted names to values.

    Args:
        options: Dictionary from dotted names to lists or `Range`s, as `choices` returns them.
        draw: Number of random draws; `None` for all combinations.

    Raises:
        ValueError: If nothing varies; for a range without `draw`; for more than 10,000 runs.
    """
    ranges = [name for name, values in options.items() if isinstance(values, Range)]
    if not varied(options):
        raise ValueError(
            f"A sweep must have an option with two values or more. Received: {', '.join(options) or 'none'}"
        )
    if ranges and draw is None:
        raise ValueError(f"A range needs a number of draws, such as --draw 10. Received: {ranges[0]} without")
    count = math.inf if ranges else math.prod(len(values) for values in options.values())
    if min(count, draw or math.inf) > MOST:
        raise ValueError(f"A sweep must have at most {MOST:,} runs. Received: {min(count, draw or math.inf):,}")
    if draw is None or draw >= count:
        rows = itertools.product(*options.values())
    else:
        random, drawn = np.random.default_rng(SEED), {}
        for _ in range(TRIES * draw):
            values = [_drawn(each, random) for each in options.values()]
            drawn.setdefault(repr(values), values)
            if len(drawn) == draw:
                break
        rows = drawn.values()
    return [dict(zip(options, values)) for values in rows]


def _drawn(values, random):
    return values.draw(random) if isinstance(values, Range) else values[random.integers(len(values))]


def varied(options):
    """Returns the names of the options that have more than one value."""
    return [name for name, values in options.items() if isinstance(values, Range) or len(values) > 1]


def label(changes, names):
    """Returns the name of a run's directory, with its options, such as `"learning_rate=0.001,depth=6"`.

    Args:
        changes: Dictionary from dotted names to values.
        names: Names of the options that vary.
    """
    last = [name.rpartition(".")[2] for name in names]
    short = last if len(set(last)) == len(last) else names
    text = ",".join(f"{name}={changes[full]}" for name, full in zip(short, names))
    safe = re.sub(r"[^\w.,=+()-]", "_", text)[:LONGEST]
    return safe if safe == text else f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
