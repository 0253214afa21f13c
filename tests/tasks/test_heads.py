import json

import pytest

from keras_vit.config import Detect, Recipe, Segment, override, plain

CLASSES = ("a", "b", "c")


def test_a_head_is_a_word_or_a_word_with_options():
    assert Detect().head_options == {"width": None, "box_weight": 5.0} and Detect(head="tokens").head_options == {}
    mask = Segment(classes=CLASSES, head={"kind": "mask", "depth": 3})
    assert mask.head_kind == "mask" and mask.head_options == {"depth": 3, "width": None}


@pytest.mark.parametrize(
    "task, head, said",
    [
        (Detect, "boxes", "`Detect.head` must be one of 'points', .* Received: Detect.head='boxes'"),
        (Detect, {"width": 3}, "Detect.head must have a kind among points, .* Received: {'width': 3}"),
        (Detect, {"kind": "decoder", "width": 3}, "Detect.head 'decoder' has the options depth. Received: width=3"),
        (Detect, {"kind": "tokens", "depth": 3}, "Detect.head 'tokens' has no options. Received: depth=3"),
        (Detect, {"kind": "points", "width": 0}, "must be a positive integer. Received: Detect.head.width=0"),
        (Detect, {"kind": "points", "box_weight": -1}, "0 or more. Received: Detect.head.box_weight=-1"),
        (Detect, {"kind": "open", "words": ["a"]}, "dictionary from names to texts. Received: \\['a'\\]"),
        (Detect, {"kind": "open", "words": {"a": ["b"]}}, "`Detect.head.words` must be a text or several"),
        (Detect, {"kind": "open", "prompts": []}, "must be a text or several. Received: \\[\\]"),
        (Detect, {"kind": "open", "tokens": 3}, "`Detect.head.tokens` must be a text. Received: 3"),
        (Segment, {"kind": "mask", "depth": None}, "Received: Segment.head.depth=None"),
    ],
)
def test_what_a_head_does_not_know_is_refused(task, head, said):
    with pytest.raises(ValueError, match=said):
        task(classes=CLASSES, head=head)


def test_changes_reach_inside_and_json_keeps_them():
    recipe = Recipe(name="x", model={}, task=Segment(classes=CLASSES, head="dpt"))
    changed = override(recipe, {"task.head.width": 64})
    assert changed.task.head == {"kind": "dpt", "width": 64}
    assert plain.from_dict(json.loads(json.dumps(plain.to_dict(changed)))) == changed
    assert override(changed, {"task.head": "linear"}).task.head_options == {}
    with pytest.raises(ValueError, match=r"no option 'task.head.depth'. Did you mean 'width'"):
        override(recipe, {"task.head.depth": 2})
