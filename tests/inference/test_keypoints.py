import keras
import pytest

import keras_vit
from keras_vit.inference.keypoints import COCO, mirrored
from tests.poses import small

EYES = ("nose", "left_eye", "right_eye")


def named(*names):
    model = keras.models.clone_model(small(keypoints=len(names)))
    keras_vit.class_names(model, list(names))
    return model


def test_coco_s_order():
    """Nose; eyes, ears, shoulders, elbows, wrists, hips, knees, ankles, left before right."""
    assert COCO == (0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15)
    assert mirrored(small()) == COCO


@pytest.mark.parametrize(
    "names, partners",
    [
        (EYES, (0, 2, 1)),
        (("Nose", "R_Eye", "L_Eye"), (0, 2, 1)),
        (("Left Ear", "neck", "Right Ear"), (2, 1, 0)),
        (("LeftKnee", "RightKnee", "pelvis"), (1, 0, 2)),
        (("rightknee", "leftknee", "LKnee", "RKnee"), (1, 0, 3, 2)),
        (("left_hand_1", "left_hand_2", "right_hand_2", "right_hand_1"), (3, 2, 1, 0)),
    ],
)
def test_by_names(names, partners):
    assert mirrored(named(*names)) == partners


@pytest.mark.parametrize(
    "names, received",
    [
        (("nose", "left_eye", "left_ear"), "'left_eye'"),
        (("left_eye", "right_eye", "face-0", "face-1"), "'face-0'"),  # of which nothing says what is opposite
        (("nose", "neck", "tail"), "3 keypoints, nose, neck, tail"),
        (("L_Eye", "l_eye", "r_eye"), "3 keypoints, L_Eye, l_eye, r_eye"),
    ],
)
def test_unclear_names_are_refused(names, received):
    with pytest.raises(ValueError, match=f"which say what is left and right.*Received: {received}$"):
        mirrored(named(*names))


def test_no_names_are_refused():
    with pytest.raises(ValueError, match="Received: 16 keypoints, without names$"):
        mirrored(small(keypoints=16))
