import warnings

import pytest

from keras_vit.utils.warned import LeftOut, named, quoted, refuse_or_leave_out

BAD = [f"{i}.png (is empty)" for i in range(12)]


def test_bad_files_are_refused_or_left_out():
    with pytest.raises(ValueError, match=r"^12 of 40 masks cannot be read\. Repair or remove them, .*skip:\n  0\.png"):
        refuse_or_leave_out(BAD, 40, "masks", "raise")
    with pytest.warns(LeftOut, match=r"Left out 1 of 40 clips, which have no frames:\n  0\.png"):
        refuse_or_leave_out(BAD[:1], 40, "clips", "skip", "have no frames")
    with pytest.raises(ValueError, match="12 of 12 images cannot be read"):
        refuse_or_leave_out(BAD, 12, "images", "skip")
    with warnings.catch_warnings(action="error"):
        refuse_or_leave_out([], 0, "images", "raise")


def test_the_first_faults_are_named():
    assert named(BAD[:2]) == "0.png (is empty)\n  1.png (is empty)"
    assert named(BAD).endswith("9.png (is empty)\n  and 2 more") and named(BAD, 20).endswith("and 10 more")
    assert quoted(["a", "b"]) == "'a', 'b'" and quoted(list("abcdefghijkl")).endswith("'j' and 2 more")
