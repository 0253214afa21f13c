import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.frozen import transferring
from tests.marks import slow

DIGITS = keras_vit.load_recipe("digits")


def test_the_score_is_that_of_a_logistic_regression_on_the_test_images():
    """Computed here from scikit-learn's digits, images drawn alike."""
    from keras_vit.data import sources

    (row,) = transferring.transfer(["mnist"], ["digits"], examples=120, tests=80)
    assert (row["data"], row["model"], row["examples"], row["tests"]) == ("digits", "mnist", 120, 80)
    embedder = keras_vit.frozen.Embedder("mnist")
    parts = [sources.load(DIGITS.data, split) for split in (DIGITS.data.train, DIGITS.data.test)]
    drawn = [np.random.default_rng(0).permutation(len(part))[:n] for part, n in zip(parts, (120, 80))]
    train, test = (part.take(rows) for part, rows in zip(parts, drawn))
    vectors = [embedder([*part.images]).astype("float64") for part in (train, test)]
    mean, scale = vectors[0].mean(0), np.maximum(vectors[0].std(0), 1e-12)
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression(C=row["strength"], max_iter=1000).fit((vectors[0] - mean) / scale, train.labels)
    assert abs(found.score((vectors[1] - mean) / scale, test.labels) - row["linear"]) <= 1 / 80
    assert row["linear"] > 0.8 and "finetuned" not in row


def test_encoded_images_and_files_are_read(tmp_path):
    import io

    from PIL import Image

    from keras_vit.data.memory import Source

    pixels = np.random.default_rng(0).integers(0, 256, (2, 6, 6, 3)).astype("uint8")
    encoded = []
    for i, image in enumerate(pixels):
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        encoded.append(buffer.getvalue())
        (tmp_path / f"{i}.png").write_bytes(encoded[-1])
    labels = {"labels": np.array([0, 1], "int32")}
    files = Source(np.array([str(tmp_path / f"{i}.png") for i in range(2)]), labels, files=True)
    for source in (Source(pixels, labels), Source(np.array(encoded, object), labels), files):
        images = transferring._images(source)
        found = keras_vit.preprocess(keras_vit.vit("mu/2", image_size=6), images)
        np.testing.assert_array_equal(found, pixels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(data=["nuclei"]), "must be those of a recipe with Classify.* Received: 'nuclei', with Segment"),
        (dict(examples=0), "Received: examples=0"),
        (dict(examples=11), "Each class needs two training images: .* in 'digits', examples=11"),
        (dict(models=[keras_vit.vit("mu/4", image_size=8)], epochs=1), "Models to be fine-tuned must be named"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        transferring.transfer(**{"models": ["mnist"], "data": ["digits"], **arguments})


@slow
@pytest.mark.compiled
def test_fine_tuning_uses_the_same_images():
    (row,) = transferring.transfer(["mnist"], ["digits"], examples=200, tests=100, epochs=2)
    assert 0.3 < row["finetuned"] <= 1
