import pytest

from keras_vit.checkpoints.families import FAMILIES, family_of
from keras_vit.checkpoints.files.read import open_files
from tests.checkpoints.helpers import GOLDEN, file_of

pytestmark = pytest.mark.backend


def test_a_family_is_a_row_of_what_its_journey_needs():
    latents = {"latent_encoder", "latent_decoder"}
    assert {family.part for family in FAMILIES} == {"image", "text", "decoder", "heads", "masks"} | latents
    names = [form.name for family in FAMILIES for form in family.formats]
    assert len(FAMILIES) == 8 and "keras" in names and "diffusers-dit" in names
    assert all(callable(part) for family in FAMILIES for part in family if not isinstance(part, (str, tuple)))


@pytest.mark.parametrize(
    "path, part, what, form",
    [
        (file_of("google_vit"), "image", "be a Vision Transformer", "google"),
        (GOLDEN.parent / "towers" / "clip", "image", "be a Vision Transformer", "huggingface-clip"),
        (GOLDEN.parent / "towers" / "clip", "text", "have a text tower", "huggingface"),
        (GOLDEN.parent / "captions" / "trocr", "text", "have a decoder", "huggingface-trocr"),
    ],
)
def test_one_file_has_parts_of_different_families(path, part, what, form):
    with open_files(path) as files:
        family, found, names = family_of(files.part(part), part, "auto")
    assert family.what == what and found.name.startswith(form) and names


def test_of_no_family(tmp_path):
    with open_files(file_of("google_vit")) as files:
        other = files.part()._replace(shapes={"a": (1,)})
        with pytest.raises(ValueError, match="must be a Vision Transformer of google.* Received: a file with a"):
            family_of(other, "image", "auto")
        with pytest.raises(ValueError, match="must have a text tower of"):
            family_of(other, "text", "auto")
