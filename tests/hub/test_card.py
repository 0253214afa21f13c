import pytest

import keras_vit
from keras_vit.hub.card import pipeline_of


def test_the_card_is_what_the_search_of_the_hub_reads(run, tmp_path):
    library = pytest.importorskip("huggingface_hub")
    path = keras_vit.push_to_hub(run, "hf://me/cells", license="apache-2.0", folder=tmp_path / "new")
    card = library.ModelCard.load(f"{path}/README.md")
    assert (card.data.library_name, card.data.pipeline_tag) == ("keras", "image-classification")
    assert card.data.license == "apache-2.0" and "keras_vit" in card.data.tags
    assert {result.metric_type for result in card.data.eval_results} >= {"accuracy", "loss"}
    assert "hf://me/cells" in card.text and "| accuracy |" in card.text and "- `model.tflite`" in card.text


@pytest.mark.parametrize(
    "job, name",
    [
        (("classes",), "image-classification"),
        (("classes", True), "video-classification"),
        (("boxes",), "object-detection"),
        (("boxes", True), None),  # its examples are images
        (("velocity",), "unconditional-image-generation"),
        (("velocity", False, True), "text-to-image"),
        (("words",), "image-to-text"),
        (("words", False, True), "translation"),
        (("numbers",), None),
        ((None,), "image-feature-extraction"),
    ],
)
def test_jobs_have_the_names_of_the_hub(job, name):
    assert pipeline_of(*job) == name
