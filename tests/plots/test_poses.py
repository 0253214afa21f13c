import numpy as np

from keras_vit.plots import draw_poses
from keras_vit.plots.poses import SKELETON


def person(score=1.0):
    points = np.stack([np.linspace(5, 55, 17), np.linspace(8, 40, 17), np.full(17, score)], -1)
    return {"keypoints": points.ravel().tolist()}


def test_each_person_has_a_color_of_its_own():
    image = np.zeros((50, 60, 3), "uint8")
    one, two = draw_poses(image, [person()]), draw_poses(image, [person(0), person()])
    assert one.shape == image.shape and one.dtype == np.uint8
    assert one.any() and two.any() and (one != two).any()
    assert {number for pair in SKELETON for number in pair} == {*range(17)}


def test_what_is_not_found_is_not_drawn():
    image = np.full((50, 60, 1), 90.0)
    np.testing.assert_array_equal(draw_poses(image, [person(0.2)]), np.full((50, 60, 3), 90, "uint8"))
    assert (draw_poses(image, [person(0.2)], least=0.1) != 90).any()
