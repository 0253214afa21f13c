import pytest

from keras_vit import vit
from keras_vit.checkpoints.describe import Description, recognize
from keras_vit.checkpoints.files.read import open_checkpoint
from keras_vit.checkpoints.formats import google, timm
from keras_vit.checkpoints.match import matching, steps_for
from tests.checkpoints.helpers import file_of

pytestmark = pytest.mark.backend


def described(checkpoint, form, names):
    return Description(checkpoint, form, names, {"tokens": {}}, {}, {})


def test_names_are_written_out():
    match = next(matching(google.FORMAT, "stem/stage2_unit0/norm1/gamma", {}))
    assert match.ours == ("stem/stage2_unit0/norm1/gamma",) and match.theirs == ("block3/unit1/gn1/scale",)
    match = next(matching(timm.FORMAT, "pool/attention/value/bias", {"norm": "", "root": ""}))
    assert match.ours == ("pool/attention/key/bias", "pool/attention/value/bias")
    assert list(matching(timm.FORMAT, "pre_logits/bias", {"norm": "", "root": ""})) == []


def test_every_weight_is_filled_once_and_nothing_is_read():
    model = vit(None, image_size=24, patch_size=8, width=24, depth=2, num_heads=3, mlp_dim=48, num_classes=7)
    with open_checkpoint(file_of("google_vit")) as checkpoint:

        def read(name):
            raise AssertionError(f"{name} was read")

        form, names = recognize(checkpoint)
        steps = steps_for(model, described(checkpoint._replace(read=read), form, names))
    paths = [path for step in steps.values() for path in step.paths]
    assert sorted(paths) == sorted(v.path for v in model.weights)


def test_a_vector_may_have_axes_of_one():
    with open_checkpoint(file_of("google_r_ti")) as checkpoint:
        form, names = recognize(checkpoint)
        flat = {k: v[-1:] if k.startswith("gn_root") else v for k, v in checkpoint.shapes.items()}
        model = vit(None, image_size=64, patch_size=8, width=24, depth=2, num_heads=3, mlp_dim=48, num_classes=7,
                    stem=form.architecture(checkpoint.shapes, checkpoint)[0]["stem"])  # fmt: skip
        steps_for(model, described(checkpoint._replace(shapes=flat), form, names))
        wrong = {k: (2, 32) if k == "gn_root/bias" else v for k, v in checkpoint.shapes.items()}
        with pytest.raises(ValueError, match=r"gn_root/bias is \(2, 32\), not \(1, 1, 1, 64\)"):
            steps_for(model, described(checkpoint._replace(shapes=wrong), form, names))


def test_heads_are_a_shape_in_google_s_files():
    model = vit(None, image_size=24, patch_size=8, width=24, depth=2, num_heads=4, mlp_dim=48, num_classes=7)
    pattern = r"\(24, 3, 8\), not \(24, 4, 6\)"
    with open_checkpoint(file_of("google_vit")) as checkpoint, pytest.raises(ValueError, match=pattern):
        steps_for(model, described(checkpoint, *recognize(checkpoint)))
