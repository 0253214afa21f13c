import threading

import pytest

from keras_vit.utils import reading

pytestmark = pytest.mark.backend


def read(image):
    if image % 5 == 3:
        raise ValueError(f"{image} is damaged")
    return image * 10


def test_batches_keep_the_order_and_name_faults_by_place():
    first, second = reading.batches(read, iter(range(7)), 4)
    assert first.images == [0, 1, 2, 3] and first.pixels == {0: 0, 1: 10, 2: 20} and str(first.errors[3])[0] == "3"
    assert second == ([4, 5, 6], {0: 40, 1: 50, 2: 60}, {}) and len(second) == 3
    assert not [*reading.batches(read, [], 4)]


def test_few_are_read_ahead_however_many_there_are():
    asked = []
    found = reading.batches(lambda image: image, (asked.append(i) or i for i in range(10**9)), 4)
    for number in range(1, 4):
        next(found)
        assert len(asked) == 4 * (number + reading.AHEAD - 1)
    found.close()
    asked.clear()
    one = reading.batches(lambda image: image, (asked.append(i) or i for i in range(10**9)), 1, ahead=1)
    assert [len(asked) for _ in zip(range(3), one)] == [1, 2, 3]


def test_an_interruption_waits_for_no_more_than_is_being_read(monkeypatch):
    begun, go = [], threading.Event()

    def slow(image):
        begun.append(image)
        go.wait(10)

    found = reading.batches(slow, range(1000), 500)
    waits = threading.Timer(0.2, go.set)
    waits.start()

    def interrupted(images, reads):
        raise KeyboardInterrupt

    monkeypatch.setattr(reading, "_gathered", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(found)
    assert len(begun) < 500


def test_any_other_error_is_raised():
    with pytest.raises(ZeroDivisionError):
        list(reading.batches(lambda image: 1 / image, [1, 0], 2))
