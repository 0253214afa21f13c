"""Tables with a column of masks: several rows of an image, each with its own."""

import json

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data, Segment
from keras_vit.data import sources
from keras_vit.data.readers.table_cells import FileNames
from keras_vit.utils.images import encoded, mask_pixels
from keras_vit.utils.warned import LeftOut
from tests import sentences

TARGETS = ("segmentation_masks", "texts")


@pytest.fixture
def folder(tmp_path):
    return sentences.written(tmp_path / "squares", 6)


def load(folder, split="all", targets=TARGETS, **more):
    return sources.load(Data(source=f"folder:{folder}", **more), split, targets)


def rewritten(folder, change):
    """Changes the lines of the table, a list with its header."""
    path = folder / "metadata.csv"
    path.write_text("\n".join(change(path.read_text().splitlines())))


def test_each_row_has_an_image_a_sentence_and_a_mask(folder):
    source = load(folder)
    assert len(source) == 12 and len({*source.images}) == 6 and source.files
    for image, mask, texts in zip(source.images, source.targets["segmentation_masks"], source.targets["texts"]):
        number = int(image.rpartition("/")[2].removesuffix(".png"))
        (name,) = (color for color in sentences.COLORS if color in texts[0])
        np.testing.assert_array_equal(mask_pixels(encoded(mask)), sentences.scene(number)[1][name])
    assert source.digests.shape[0] == 12 and len({bytes(row) for row in source.digests}) == 12  # of both files
    halves = [load(folder, split) for split in ("all[:50%]", "all[50%:]")]
    assert not {*halves[0].images} & {*halves[1].images}  # the rows of an image stay together


def test_columns_of_other_names_and_json_lines(folder):
    rows = [line.split(",") for line in (folder / "metadata.csv").read_text().splitlines()[1:]]
    (folder / "metadata.csv").unlink()
    lines = [json.dumps({"file_name": a, "says": [b, "it"], "where": c}) for a, b, c in rows]
    (folder / "metadata.jsonl").write_text("\n".join(lines))
    columns = {"texts": "says", "segmentation_masks": "where"}
    found = load(folder, columns=columns)
    assert found.targets["texts"][0][1] == "it" and len(found) == 12
    with pytest.raises(
        ValueError, match="has no column of segmentation_masks, such as 'segmentation_mask' or .*'mask'"
    ):
        load(folder, columns={"texts": "says"})
    with pytest.raises(ValueError, match="Files must be in one column. Received: 'where', 'says'"):
        load(folder, columns={"texts": "says", "segmentation_masks": ["where", "says"]})


def test_masks_of_classes_may_be_in_a_table_too(folder):
    rewritten(folder, lambda lines: [lines[0], *lines[1::2]])  # a row for each image
    with pytest.warns(LeftOut, match="6 images that metadata.csv does not name"):  # the masks of the other rows
        found = load(folder, targets=("segmentation_masks",), columns={"segmentation_masks": "mask"})
    assert len(found) == 6 and {*found.mask_values} == {0, 1}
    with pytest.raises(ValueError, match="Masks|a mask"):  # without, they are in the folder `masks`, of other names
        load(folder, targets=("segmentation_masks",))


def test_a_table_next_to_folders_of_masks_still_says_groups_alone(folder):
    for path in (folder / "masks").iterdir():
        path.unlink()
    for i in range(6):
        Image.fromarray(np.ones((16, 16), "uint8")).save(folder / "masks" / f"{i}.png")
    (folder / "metadata.csv").write_text(
        "\n".join(["file_name,mask,day", *(f"images/{i}.png,x,{i % 2}" for i in range(6))])
    )
    found = load(folder, targets=("segmentation_masks",), columns={"groups": "day"})
    assert len(found) == 6 and len({*found.groups}) == 2


def test_wrong_rows_are_named_and_may_be_left_out(folder):
    def change(lines):
        lines[1] = lines[1].rpartition(",")[0] + ","
        lines[2] = lines[2].replace("masks/", "masks/no_")
        return lines

    rewritten(folder, change)
    with pytest.raises(ValueError, match=r"line 2: 'mask' is empty\n  line 3: there is no file 'masks/no_"):
        load(folder)
    with pytest.warns(LeftOut) as told:
        assert len(load(folder, bad_images="skip")) == 10
    assert any("2 rows of metadata.csv" in str(each.message) for each in told)


def test_masks_that_do_not_fit(folder):
    first = load(folder).targets["segmentation_masks"][0]
    Image.new("L", (8, 16)).save(first)
    with pytest.raises(
        ValueError, match="A mask must have the size of its image. Received: .* of 8 x 16 pixels for an"
    ):
        load(folder)
    Image.new("RGB", (16, 16)).save(first)
    with pytest.raises(ValueError, match="must be a PNG of class indices.* of mode 'RGB'"):
        load(folder)
    Image.fromarray(np.full((16, 16), 255, "uint8")).save(first)
    values = load(folder).mask_values
    assert {*values} == {0, 1, 255} and values[255] == first
    pixels = np.zeros((16, 16), "uint8")
    pixels[3:5] = 255
    Image.fromarray(pixels).convert("1").save(first)  # black and white, of one bit
    found = load(folder).targets["segmentation_masks"]
    np.testing.assert_array_equal(mask_pixels(found[0]), pixels // 255)


def test_masks_of_sentences_drawn_in_white_are_refused(folder):
    for path in (folder / "masks").iterdir():
        with Image.open(path) as mask:
            pixels = np.asarray(mask) * 255
        Image.fromarray(pixels).save(path)
    with pytest.raises(ValueError, match=r"must have pixels of the value 1.*255 is void. Received: only \[0, 255\]"):
        Segment(text=True).on(load(folder), {})


def test_cells_of_files():
    with pytest.raises(ValueError, match="'mask' is empty"):
        FileNames(("mask",)).parse([None])
