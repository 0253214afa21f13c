import pytest

from keras_vit.tasks.pretrain.encoder import visible_patches


def test_both_roundings_of_the_authors():
    """With 196 patches, `int(196 * 0.1)` are visible in MAE's code, `int(196 * 0.9)` masked in VideoMAE's."""
    assert visible_patches(196, 0.75) == visible_patches(196, 0.75, tubes=True) == 49
    assert visible_patches(196, 0.9) == 19 and visible_patches(196, 0.9, tubes=True) == 20
    assert visible_patches(6, 0.9, tubes=True) == 1  # one masked less than six
    with pytest.raises(ValueError, match="at least one of 6 patches visible and one masked. Received: mask_ratio=0.9"):
        visible_patches(6, 0.9)
    with pytest.raises(ValueError, match="one masked. Received: mask_ratio=0.1"):
        visible_patches(6, 0.1, tubes=True)
