import time

import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.parallel import each, in_parts


def test_parts_are_in_order():
    assert [*in_parts(lambda part: list(part), range(10), 4, "checking")] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert each(str, range(3)) == ["0", "1", "2"] and each(str, []) == []


def test_long_checks_show_how_far_they_are(clock, capsys):
    def check(item):
        clock[0] += 11.0  # seconds
        return item

    assert each(check, range(8)) == list(range(8))
    assert "checking images: " in capsys.readouterr().err
    each(str, range(8))
    assert not capsys.readouterr().err


def test_an_error_ends_a_check_before_the_rest_is_done():
    begun = []

    def check(item):
        begun.append(item)
        time.sleep(0.01)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        each(check, range(200))
    assert len(begun) < 200
