import dataclasses

import numpy as np
import pytest
from PIL import Image

tf = pytest.importorskip("tensorflow")

from keras_vit import config  # noqa: E402
from keras_vit.data import cutting, inspection, pipeline  # noqa: E402
from keras_vit.data.memory import Source  # noqa: E402
from keras_vit.data.windows.source import BOXES, MASKS, Crops  # noqa: E402

SIDE, SIZE, COUNT = 16, (16, 16, 3), 5
HEIGHTS, WIDTHS = (100, 40, 64, 16, 200), (90, 250, 64, 16, 30)


def picture(place):
    """Returns pixels that say which picture they are of, and where: its place, the row and the column."""
    rows, columns = np.indices((HEIGHTS[place], WIDTHS[place]))
    return np.stack([np.full_like(rows, 10 * place), rows, columns], axis=-1).astype("uint8")


def mask(place):
    rows, columns = np.indices((HEIGHTS[place], WIDTHS[place]))
    return ((rows + columns) % 4).astype("uint8")


def boxes():
    """Returns one object in each picture: rows 4 to 12 and columns 6 to 14."""
    edges = [(4 / h, 6 / w, 12 / h, 14 / w, i % 2) for i, (h, w) in enumerate(zip(HEIGHTS, WIDTHS))]
    return np.array(edges, "float32")[:, None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("pictures")
    for place in range(COUNT):
        Image.fromarray(picture(place)).save(root / f"{place}.png")
        Image.fromarray(mask(place)).save(root / f"mask{place}.png")
    return root


def pictures(folder, *names):
    columns = {"labels": np.arange(COUNT, dtype="int32"), BOXES: boxes()}
    columns[MASKS] = np.array([str(folder / f"mask{i}.png") for i in range(COUNT)], object)
    paths = np.array([str(folder / f"{i}.png") for i in range(COUNT)], object)
    return Source(paths, {name: columns[name] for name in names}, tuple("abcde"), files=True)


TASKS = {
    "labels": config.Classify(classes=tuple("abcde")),
    MASKS: config.Segment(classes=tuple("abcd")),
    BOXES: config.Detect(classes=("a", "b"), most=3),
}


def recipe(name="labels", batch=6, **options):
    data = config.Data(source="folder:x", batch_size=batch, crops_per_image=9, **options)
    return config.Recipe("x", {}, task=TASKS[name], data=data, optim=config.Optim(epochs=3), seed=5)


def crops(folder, name="labels", **options):
    made = recipe(name, **options)
    return cutting.crops(pictures(folder, name), made.task, made, SIZE), made


def examples(source, epoch=0, seed=5, count=3):
    keys = source.shuffled(seed, epoch, count)
    return [{n: v.numpy() for n, v in source.reader()(each).items()} for each in keys]


def joined(parts, name="images"):
    return np.concatenate([part[name] for part in parts])


def test_an_epoch_has_the_crops_of_each_picture(folder):
    source, _ = crops(folder)
    assert len(source) == 45 and source.channels == (3,) and source.sizes() == [("crops", (16, 16))]
    images, labels = (joined(examples(source), name) for name in ("images", "labels"))
    assert images.shape == (45, *SIZE) and images.dtype == np.uint8
    np.testing.assert_array_equal(images[:, 3, 7, 0], 10 * labels)
    assert np.bincount(labels).tolist() == [9] * 5
    for image, place in zip(images, labels):
        top, left = image[0, 0, 1:].astype(int)
        np.testing.assert_array_equal(image, picture(place)[top : top + SIDE, left : left + SIDE])
    assert len({image.tobytes() for image in images}) > 30  # the fourth picture has one crop


def test_the_order_and_the_crops_follow_from_seed_and_epoch(folder):
    source, _ = crops(folder)
    first = joined(examples(source))
    np.testing.assert_array_equal(first, joined(examples(source, count=9)))  # whatever is read at once
    assert (first != joined(examples(source, epoch=1))).any()
    assert (first != joined(examples(source, seed=6))).any()
    labels = joined(examples(source), "labels")
    assert (np.diff(labels) != 0).sum() > 25  # mixed


def test_pictures_that_are_decoded_come_in_groups(folder):
    class InGroups(Crops):
        group = 3 * 100 * 90  # bytes

    source, _ = crops(folder)
    grouped = InGroups(**{field.name: getattr(source, field.name) for field in dataclasses.fields(source)})
    assert grouped.costs.tolist() == [3 * h * w for h, w in zip(HEIGHTS, WIDTHS)]
    orders = []
    for epoch in range(6):
        labels = joined(examples(grouped, epoch), "labels")
        assert np.bincount(labels).tolist() == [9] * 5
        opened, spans = 0, [np.flatnonzero(labels == place)[[0, -1]] for place in range(5)]
        for position in range(45):
            at_once = [p for p, (a, b) in enumerate(spans) if a <= position <= b]
            opened = max(opened, sum(3 * HEIGHTS[p] * WIDTHS[p] for p in at_once))
        assert opened <= InGroups.group + 3 * 40 * 250  # a group, and the last picture of it
        orders.append(labels.tolist())
    assert len({tuple(order) for order in orders}) == 6


def test_masks_are_cut_where_their_images_are(folder):
    source, _ = crops(folder, MASKS)
    for part in examples(source):
        for image, values in zip(part["images"], part[MASKS]):
            place, top, left = image[0, 0].astype(int)
            wanted = mask(place // 10)[top : top + SIDE, left : left + SIDE]
            np.testing.assert_array_equal(values[..., 0], wanted)


def test_boxes_are_cut_where_their_images_are(folder):
    source, _ = crops(folder, BOXES)
    seen = 0
    for part in examples(source):
        for image, rows in zip(part["images"], part[BOXES]):
            place, top, left = image[0, 0].astype(int)
            edges = np.clip(np.array([4 - top, 6 - left, 12 - top, 14 - left]), 0, SIDE) / SIDE
            objects = rows[rows[:, 4] >= 0]
            if len(objects):
                np.testing.assert_allclose(objects, [[*edges, place // 10 % 2]], atol=1e-5)
                seen += 1
    assert seen >= 45 * 0.9 - 5  # `crops_empty` of them may be anywhere


def test_pictures_without_objects_are_no_error(folder):
    """detectron2#1633: a crop of a picture without annotations was an IndexError."""
    made = recipe(BOXES)
    some = pictures(folder, BOXES)
    some.targets[BOXES][1:, :, 4] = -1
    source = cutting.crops(some, made.task, made, SIZE)
    parts = examples(source)
    with_objects = (joined(parts, BOXES)[..., 4] >= 0).any(axis=1)
    assert with_objects.sum() >= 0.9 * 45 - 1
    assert len(set(joined(parts)[:, 0, 0, 0])) > 1  # some crops of the other pictures, a tenth
    some.targets[BOXES][..., 4] = -1
    assert (
        np.bincount(joined(examples(cutting.crops(some, made.task, made, SIZE)))[:, 0, 0, 0])[::10].tolist() == [9] * 5
    )


def test_balanced_masks_show_rare_classes_as_often(folder, tmp_path):
    paths = []
    for place in range(COUNT):
        values = np.zeros((HEIGHTS[place], WIDTHS[place]), "uint8")
        values[:5, -5:] = 2 if place == 1 else 0
        values[-3:, :] = 1
        Image.fromarray(values).save(tmp_path / f"{place}.png")
        paths.append(str(tmp_path / f"{place}.png"))
    shares = {}
    for balanced in (False, True):
        made = recipe(MASKS, crops_balanced=balanced)
        some = pictures(folder, MASKS)
        some.targets[MASKS] = np.array(paths, object)
        masks = [joined(examples(cutting.crops(some, made.task, made, SIZE), epoch), MASKS) for epoch in range(5)]
        shares[balanced] = (np.concatenate(masks) == 2).any(axis=(1, 2, 3)).mean()
    assert shares[False] < 0.05 and 0.25 < shares[True] < 0.45  # a third


def test_a_small_picture_is_continued_and_void(folder):
    made = recipe(MASKS)
    source = cutting.crops(pictures(folder, MASKS), made.task, made, (50, 20, 3))
    for part in examples(source):
        for image, values in zip(part["images"], part[MASKS]):
            place = image[0, 0, 0] // 10
            height, width = (min(side, whole) for side, whole in zip((50, 20), (HEIGHTS[place], WIDTHS[place])))
            assert (values[height:] == 255).all() and (values[:, width:] == 255).all()
            assert (values[:height, :width] < 4).all()
            np.testing.assert_array_equal(image[height:], image[height - 1 : height].repeat(50 - height, 0))
            np.testing.assert_array_equal(image[:, width:], image[:, width - 1 : width].repeat(20 - width, 1))


def test_nothing_of_the_caller_is_changed(folder):
    """albumentations#1058: a crop changed the masks that it was given."""
    images = np.stack([picture(2)] * 3)
    masks = np.stack([mask(2)[..., None]] * 3)
    kept = images.copy(), masks.copy()
    made = recipe(MASKS, crops_balanced=True)
    some = Source(images, {MASKS: masks}, given=True)
    found = examples(cutting.crops(some, made.task, made, (80, 80, 3)))
    assert joined(found).shape[0] == 27
    np.testing.assert_array_equal(images, kept[0])
    np.testing.assert_array_equal(masks, kept[1])


@pytest.mark.parametrize("name", [*TASKS])
def test_a_run_sees_the_same_batches_wherever_it_begins_and_however_it_is_shared(folder, name):
    source, made = crops(folder, name)
    made = dataclasses.replace(made, augment=config.Augment(flip=True, rotation=10.0))
    whole = [*pipeline.training_batches(source, made, SIZE, first_epoch=0)]
    assert len(whole) == 3 * 7 == 3 * pipeline.steps_per_epoch(source, made)
    later = [*pipeline.training_batches(crops(folder, name)[0], made, SIZE, first_epoch=1, first_step=3)]
    assert len(later) == 21 - 10
    for (x, y), (a, b) in zip(whole[10:], later):
        np.testing.assert_array_equal(x, a)
        np.testing.assert_array_equal(y, b)
    shares = [[*pipeline.training_batches(source, made, SIZE, first_epoch=0, share=(i, 2))] for i in (0, 1)]
    for (x, _), *parts in zip(whole, *shares):
        np.testing.assert_array_equal(x, np.concatenate([part for part, _ in parts]))


def test_a_grid_shows_every_pixel_in_order(folder):
    source = cutting.grid(pictures(folder, MASKS), recipe(MASKS), SIZE, every=True)
    assert len(source) == sum(-(-h // SIDE) * -(-w // SIDE) for h, w in zip(HEIGHTS, WIDTHS))
    seen = [np.zeros((h, w), bool) for h, w in zip(HEIGHTS, WIDTHS)]
    made = recipe(MASKS)
    for batch in pipeline.evaluation_arrays(source, made, SIZE):
        for image, values in zip(batch["images"], batch[MASKS]):
            place, top, left = image[0, 0].astype(int)
            seen[place // 10][top : top + SIDE, left : left + SIDE] = True
            np.testing.assert_array_equal(values[..., 0], mask(place // 10)[top : top + SIDE, left : left + SIDE])
    assert all(each.all() for each in seen)
    some = source.take(np.array([3, 40, 7]))
    images = np.concatenate([batch["images"] for batch in pipeline.evaluation_arrays(some, made, SIZE)])
    every = np.concatenate([batch["images"] for batch in pipeline.evaluation_arrays(source, made, SIZE)])
    np.testing.assert_array_equal(images, every[[3, 40, 7]])


def test_validation_takes_a_fixed_part_of_the_grid(folder):
    made = recipe(BOXES)
    first, again = (cutting.grid(pictures(folder, BOXES), made, SIZE) for _ in range(2))
    assert np.bincount(first.places).tolist() == [9, 9, 9, 1, 9]
    np.testing.assert_array_equal(first.starts, again.starts)
    assert first.targets[BOXES].shape == (37, 1, 5)
    assert len(first.paths) == 37 and first.fingerprint() == pictures(folder, BOXES).fingerprint()


def test_a_file_that_is_gone_is_named(folder, tmp_path):
    for place in range(COUNT):
        Image.fromarray(picture(place)).save(tmp_path / f"{place}.png")
    some = dataclasses.replace(
        pictures(folder, "labels"), images=np.array([str(tmp_path / f"{i}.png") for i in range(COUNT)], object)
    )
    made = recipe()
    source = cutting.crops(some, made.task, made, SIZE)
    assert source.costs.all()  # as at the start of a run
    (tmp_path / "3.png").unlink()
    gone = pytest.raises(ValueError, match=r"3.png' was readable when it was checked, and now is not")
    with gone, inspection.named(source):
        examples(source)


def test_random_crops_have_no_positions(folder):
    with pytest.raises(TypeError, match="Random crops cannot be taken"):
        crops(folder)[0].take(slice(3))
