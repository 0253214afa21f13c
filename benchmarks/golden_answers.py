"""Answers the inputs of a golden folder with our model, by the names that the original's answers have there.

python benchmarks/golden_answers.py FOLDER OUT.npz

FOLDER has a `checkpoint.*`, its library's configuration, and `io.npz`, of which only the inputs are read. The
configuration and the names of the tensors show the family, a row of `FAMILIES`. Pictures in `images_nhwc` are
normalized already. `texts.json` says how many beams and words a model that writes has, `case.json` the thresholds of
maps.
"""

import functools
import json
import pathlib
import sys
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import scipy.special

import keras_vit
from keras_vit.checkpoints.files.read import open_files
from keras_vit.explain.embedding import unit
from keras_vit.inference import segmentation
from keras_vit.inference.open_detection import found, logits_of
from keras_vit.inference.queries import Eyes, objectness_of, patch_of
from keras_vit.models import segment_outputs
from keras_vit.models.open_detector import features_of
from keras_vit.traits import Traits


class Family(NamedTuple):
    """Whether files are of a family, by their configuration and names; its inputs; and its function.

    `answer(path, inputs)` returns arrays by name, or tensors.
    """

    tells: Callable
    inputs: tuple
    answer: Callable


def pixels(model, images):
    """Returns the pixels that a model's first layer turns into these values."""
    rescale = model.get_layer("rescale")
    return ((images * np.asarray(rescale.std) + np.asarray(rescale.mean)) * 255).astype("float32")


def of_towers(model, inputs):
    """Returns what an image tower and a text tower answer: embeddings, of unit length as features, and logits."""
    image, text = model.get_layer("image"), model.get_layer("text")
    images, ids = pixels(image, inputs["images_nhwc"]), inputs["tokens"].astype("int32")
    found = {
        "text_tokens_output": keras.Model(text.input, text.get_layer("norm").output)(ids, training=False),
        "text_embedding": text(ids, training=False),
        "image_embedding": image(images, training=False),
        "logits_per_image": model({"images": images, "texts": ids}, training=False),
    }
    for name in ("text", "image"):
        found[f"{name}_features"] = keras.ops.normalize(found[f"{name}_embedding"], axis=-1)
    return found


def towers(path, inputs):
    return of_towers(keras_vit.from_checkpoint(path, part="both"), inputs)


def vilt(path, inputs):
    """Reads the model at each picture's own size: what is cut off there is what the original masks."""
    read, found = functools.cache(lambda size: keras_vit.from_checkpoint(path, image_size=size)), []
    for images, (rows, columns), ids, real in zip(*(inputs[name] for name in FAMILIES["vilt"].inputs)):
        model = read((int(rows), int(columns)))
        length, pad = model.get_layer("words").length, model.get_layer("mask").pad
        texts = np.pad(np.where(real, ids, pad), (0, length - len(ids)), constant_values=pad).astype("int32")
        outputs = {
            "pooled": model.get_layer("pre_logits").output,
            "text_tokens_output": model.get_layer("norm").output[:, : len(ids)],
            "logits": model.output,
        }
        x = {"images": pixels(model, images[None, :rows, :columns]), "texts": texts[None]}
        found.append(keras.Model(model.inputs, outputs)(x, training=False))
    return {name: keras.ops.concatenate([each[name] for each in found]) for name in found[0]}


def depth(path, inputs):
    """Returns depth at the images' size, also before the function that ends the head, and the tokens it takes."""
    images = inputs["images_nhwc"]
    model = keras_vit.from_checkpoint(path, image_size=images.shape[1:3])
    head = model.get_layer("head")
    endless = type(head).from_config({**head.get_config(), "end": None, "name": "endless"})
    outputs = {"depth": model.output, "before": endless(head.input), "tokens": head.input}
    endless.set_weights(head.get_weights())
    found = keras.Model(model.input, outputs)(pixels(model, images), training=False)
    before = found["before"][..., 0]
    return {
        "depth": found["depth"][..., 0],
        "depth_before_relu": before,
        "depth_before_activation": before,
        "feature_maps": keras.ops.stack(found["tokens"]),
    }


def pose(path, inputs):
    """Returns the heat maps of images that are crops of people."""
    images = inputs["images_nhwc"]
    model = keras_vit.from_checkpoint(path, image_size=images.shape[1:3])
    return {"heatmaps_nhwc": model(pixels(model, images), training=False)}


def queries(path, inputs):
    """Returns logits of classes and masks, and the maps of photos; `case.json` has the task and its thresholds."""
    case = json.loads((path.parent / "case.json").read_text())
    model = keras_vit.from_checkpoint(path)
    about, photos = Traits(model), inputs["photos"]
    outputs = {"tokens": model.get_layer("norm").output, "queries": model.output}
    found = keras.Model(model.input, outputs)(pixels(model, inputs["images_nhwc"]), training=False)
    outputs = keras.ops.convert_to_numpy(found["queries"])
    classes, masks = segment_outputs.unpacked(outputs, about.classes, about.size)
    if case["task"] == "semantic":
        maps, count = [], len(classes) // len(photos)
        for i, photo in enumerate(photos):
            some = slice(i * count, (i + 1) * count)
            size, _, starts, axis = segmentation.windows(about.preparation, photo)
            scores = [segment_outputs.semantic_scores(*each, about.size) for each in zip(classes[some], masks[some])]
            maps.append(segment_outputs.semantic_map(scores, starts, axis, size))
    else:
        names = {"threshold": "threshold", "mask_threshold": "mask_threshold"}
        names |= {"overlap_threshold": "overlap_mask_area_threshold", "stuff": "stuff_classes"}
        options = {ours: case[theirs] for ours, theirs in names.items() if theirs in case}
        make = segment_outputs.instance_map if case["task"] == "instance" else segment_outputs.panoptic_map
        frames = [segmentation.padded(about.preparation, photo)[1] for photo in photos]
        maps = [make(*each, **options)[0] for each in zip(classes, masks, frames)]
    answers = {"tokens_output": found["tokens"], "class_logits": classes, "mask_logits_nhwc": masks}
    return answers | {f"{case['task']}_map": np.stack(maps)}


def writer(path, inputs):
    """Answers for a model that writes about images; the searches are as `texts.json` says."""
    model = keras_vit.from_checkpoint(path.parent)
    image, words = model.get_layer("image"), model.get_layer("text").get_layer("words")
    images = pixels(image, inputs["images_nhwc"])
    texts = inputs.get("decoder_inputs", inputs.get("tokens")).astype("int32")
    logits = keras.ops.convert_to_numpy(model({"images": images, "texts": texts}, training=False))
    following = np.where(texts == words.metadata["pad"], -100, texts)[:, 1:]  # BLIP predicts its own input
    labels = inputs.get("labels", following).astype("int32")
    counted, places = labels != -100, np.where(labels == -100, 0, labels)
    shares = scipy.special.log_softmax(logits[:, : labels.shape[1]], axis=-1)
    certainty = np.take_along_axis(shares, places[..., None], axis=2)
    found = {"context": image(images, training=False), "logits": logits, "loss": -certainty[..., 0][counted].mean()}
    stated = json.loads((path.parent / "texts.json").read_text())
    searches = {"greedy": {}, "beam": {"beams": stated["beams"]}}
    searches |= {"prompted": {"prompt": inputs["prompt"]}} if "prompt" in inputs else {}
    for name, options in searches.items():
        written = keras_vit.generate_text(model, images, length=stated["max_length"], **options)
        found[name] = _filled(written.ids, words.metadata, name == "beam")
        found |= {"beam_scores": written.scores} if name == "beam" else {}
    return found


def _filled(ids, marks, beams):
    """Returns ids as wide as the longest text; the original's search by beams fills with the end where padding is 0."""
    ended = np.cumsum(ids[:, 1:] == marks["end"], axis=1) - (ids[:, 1:] == marks["end"]) > 0
    ended = np.pad(ended, ((0, 0), (1, 0)))
    ids = np.where(ended, marks["end"] if beams and marks["pad"] == 0 else marks["pad"], ids)
    return ids[:, ~ended.all(0)]


def dit(path, inputs):
    """Answers for a model of images from noise; the authors' files do not say that the golden one has three heads."""
    heads = {} if path.with_name("config.json").exists() else {"num_heads": 3}
    model = keras_vit.from_checkpoint(path, **heads)
    x = {"images": inputs["latents_nhwc"], "times": inputs["timesteps"].astype("float32")}
    return {"output_nhwc": model({**x, "labels": inputs["labels"].astype("int32")}, training=False)}


def clips(path, inputs):
    """Answers for a classifier of clips: its tokens after the last norm, and before average pooling without one."""
    model = keras_vit.from_checkpoint(path)
    last = "norm" if model.get_layer("pool").pooling == "token" else f"block_{len(blocks_of(model)) - 1}"
    outputs = {"tokens_output": model.get_layer(last).output, "logits": model.output}
    return keras.Model(model.input, outputs)(pixels(model, inputs["videos_nthwc"]), training=False)


def masked_clips(path, inputs):
    """Answers for a masked autoencoder of clips: the masked tubelets in their order, and the loss."""
    videos, masked = inputs["videos_nthwc"], inputs["masked"].astype(bool)
    ratio = float(masked.mean()) + 1e-6  # rounded down, times the number of places
    learner = keras_vit.MaskedAutoencoder.from_checkpoint(path, mask_ratio=ratio)
    x = {"images": pixels(learner.model, videos), "noise": masked[:, : learner.layout.columns].astype("float32")}
    packed = keras.ops.convert_to_numpy(learner(x, training=False))
    np.testing.assert_array_equal(packed[..., -1], masked)  # a mask of tubes
    loss = keras_vit.MaskedLoss()(learner.targets(x["images"]), packed)
    return {"logits": packed[masked].reshape(len(videos), -1, packed.shape[-1])[..., :-1], "loss": loss}


def owl(path, inputs):
    """Answers for a detector of what texts name, or examples show; `case.json` has the thresholds."""
    images, tokens = inputs["images_nhwc"], inputs["tokens"].astype("int32")
    model = keras_vit.from_checkpoint(path, image_size=images.shape[1:3])
    eyes, case = Eyes(model), json.loads(path.with_name("case.json").read_text())
    numbers, sides = keras.ops.convert_to_numpy, eyes.sides(inputs["photos"].shape[1:3])
    flat = tokens.reshape(-1, tokens.shape[-1])
    output = model({"images": pixels(model.get_layer("image"), images), "texts": flat}, training=False)
    count, head = tokens.shape[1], eyes.heads.get_layer("logits")
    logits = np.stack([numbers(each)[:, i * count :][:, :count] for i, each in enumerate(output["logits"])])

    def seen(images):
        x = features_of(eyes.heads, eyes.image(pixels(eyes.image, images), training=False))
        return x, numbers(eyes.heads.get_layer("places")(x)), numbers(head.embed(x))

    def listed(boxes, logits, threshold, suppression=None):
        names, rows = range(logits.shape[-1]), []
        for i, (each, scores) in enumerate(zip(boxes, logits)):
            detected = found(each, scores, names, sides, threshold, suppression)
            order = np.argsort(detected.patches)  # as the original's
            labels = np.array(detected.classes)[order]
            rows.append([np.full(len(order), i), detected.scores[order], detected.boxes[order], labels])
        return dict(zip(("image", "scores", "boxes", "labels"), map(np.concatenate, zip(*rows))))

    x, boxes, raw = seen(images)
    result = {
        "feature_map_nhwc": keras.ops.reshape(x, (len(images), *eyes.heads.get_layer("places").grid, x.shape[-1])),
        "text_embedding": unit(numbers(eyes.text(flat, training=False))).reshape(*tokens.shape[:2], -1),
        "class_embedding": unit(raw.reshape(-1, raw.shape[-1])).reshape(raw.shape),
        "logits": logits,
        "boxes": centers(numbers(output["boxes"])),
        **({"objectness": output["objectness"]} if "objectness" in output else {}),
        **{f"found_{name}": values for name, values in listed(boxes, logits, case["threshold"]).items()},
    }
    x_query, query_boxes, raw_query = seen(inputs["query_images_nhwc"])
    objects = objectness_of(eyes.heads, x_query)
    objects = [None] * len(raw_query) if objects is None else objects
    chosen = [patch_of(raw, boxes, some, None, None) for raw, boxes, some in zip(raw_query, query_boxes, objects)]
    vectors = raw_query[np.arange(len(chosen)), chosen]
    guided = np.stack([logits_of(eyes.heads, x[i : i + 1], vectors[i : i + 1])[0] for i in range(len(vectors))])
    kept = listed(boxes, guided, case["guided_threshold"], case["nms_threshold"])
    best = np.array([kept["scores"][kept["image"] == i].max() for i in kept["image"]]) + 1e-6
    kept["scores"] = np.clip((kept["scores"] - 0.1 * best) / (0.9 * best), 0, 1)  # as the original shows them
    shown = kept["scores"] > 0
    return result | {
        "query_boxes": centers(query_boxes),
        "query_index": np.array(chosen),
        "query_embedding": vectors,
        "guided_logits": guided,
        "guided_boxes": centers(boxes),
        **{f"guided_found_{name}": values[shown] for name, values in kept.items() if name != "labels"},
    }


def clipseg(path, inputs):
    """Answers for a segmenter of what texts say: each image with its own text, and with its own example."""
    model = keras_vit.from_checkpoint(path)
    image, text, decoder = map(model.get_layer, ("image", "text", "decoder"))
    conditions = {"text_embedding": text(inputs["tokens"].astype("int32"), training=False)}
    conditions["image_embedding"] = image(pixels(image, inputs["example_images_nhwc"]), training=False)[0]
    _, *tokens = image(pixels(image, inputs["images_nhwc"]), training=False)
    found = dict(conditions)
    for name, vectors in zip(("logits", "example_logits"), conditions.values()):
        masks = keras.ops.convert_to_numpy(decoder([*tokens, vectors]))
        found[name] = np.stack([mask[..., i] for i, mask in enumerate(masks)])
    return found


def centers(boxes):
    """Returns center x, center y, width and height of boxes: top, left, bottom, right."""
    top, left, bottom, right = np.moveaxis(boxes, -1, 0)
    return np.stack([(left + right) / 2, (top + bottom) / 2, right - left, bottom - top], axis=-1)


def blocks_of(model):
    """Returns the layers of a model that are blocks."""
    return [layer for layer in model.layers if layer.name.startswith("block_")]


DIRECT = {"mean": 0.0, "std": 1.0, "value_range": (0, 1)}  # pixels that are normalized already


def detector(path, inputs):
    """Returns logits, boxes by center, width and height, and masks; Roboflow's golden file has three heads."""
    images = inputs["images_nhwc"]
    heads = {"num_heads": 3} if path.suffix == ".pth" else {}
    model = keras_vit.from_checkpoint(path, image_size=images.shape[1:3], **DIRECT, **heads)
    outputs = {"sets": model.get_layer("boxes").input}
    masks = [layer.output for layer in model.layers if layer.name == "masks"]
    outputs |= {"masks": masks[0]} if masks else {}
    found = keras.Model(model.input, outputs)(images.astype("float32"), training=False)
    (first, *_, last), answers = keras.ops.unstack(found["sets"], axis=1), {}
    for name, sets in {"": last, "encoder_": first}.items():
        top, left, bottom, right = keras.ops.unstack(sets[..., :4], axis=-1)
        answers[f"{name}boxes"] = keras.ops.stack(
            [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top], axis=-1
        )
        answers[f"{name}logits"] = sets[..., 4:]
    masks = {"masks_nhwc": keras.ops.moveaxis(found["masks"], 1, -1)} if "masks" in found else {}
    return answers | masks


def autoencoder(path, inputs):
    """Returns means and variances of images, images of latents, and of the means; latents are not scaled there."""
    (images, latents), numbers = (inputs[name] for name in FAMILIES["autoencoder"].inputs), keras.ops.convert_to_numpy
    encoder = keras_vit.from_checkpoint(path, part="encoder", image_size=images.shape[1:3])
    read = functools.cache(lambda size: keras_vit.from_checkpoint(path, part="decoder", latent_size=size))

    def decoded(latents):
        return numbers(read(latents.shape[1:3])(latents)) / 127.5 - 1

    moments, factor = numbers(encoder((images + 1) * 127.5)), scale_of(path)
    mean, logvar = np.split(moments, 2, axis=-1)
    return {
        "mean_nhwc": mean / factor,
        "logvar_nhwc": logvar - 2 * np.log(factor),
        "decoded_nhwc": decoded(latents * factor),
        "reconstruction_nhwc": decoded(mean),
    }


def scale_of(path):
    """Returns the factor by which the latents of an autoencoder are scaled; the golden one is not shifted."""
    return json.loads(path.with_name("config.json").read_text())["scaling_factor"]


OF_TOWERS = ("clip", "metaclip_2", "siglip", "siglip2")
FAMILIES = {
    "towers of transformers": Family(
        lambda config, names: config.get("model_type") in OF_TOWERS, ("images_nhwc", "tokens"), towers
    ),
    "towers of OpenCLIP": Family(lambda config, names: "model_cfg" in config, ("images_nhwc", "tokens"), towers),
    "towers of big_vision": Family(
        lambda config, names: any(name.startswith("params/txt/") for name in names), ("images_nhwc", "tokens"), towers
    ),
    "vilt": Family(
        lambda config, names: config.get("model_type") == "vilt",
        ("images_nhwc", "image_sizes", "tokens", "token_mask"),
        vilt,
    ),
    "pairs that write": Family(
        lambda config, names: config.get("model_type") == "vision-encoder-decoder",
        ("images_nhwc", "labels", "decoder_inputs"),
        writer,
    ),
    "dit": Family(
        lambda config, names: config.get("_class_name") == "DiTTransformer2DModel" or "x_embedder.proj.weight" in names,
        ("latents_nhwc", "timesteps", "labels"),
        dit,
    ),
    "blip": Family(
        lambda config, names: config.get("model_type") == "blip",
        ("images_nhwc", "tokens", "token_mask", "prompt"),
        writer,
    ),
    "clips": Family(
        lambda config, names: config.get("model_type") in ("vivit", "videomae") and "classifier.weight" in names,
        ("videos_nthwc",),
        clips,
    ),
    "masked clips": Family(
        lambda config, names: config.get("model_type") == "videomae" and "encoder_to_decoder.weight" in names,
        ("videos_nthwc", "masked"),
        masked_clips,
    ),
    "depth": Family(
        lambda config, names: config.get("model_type") in ("depth_anything", "dpt"), ("images_nhwc",), depth
    ),
    "queries": Family(lambda config, names: config.get("model_type") == "eomt", ("images_nhwc", "photos"), queries),
    "owl": Family(
        lambda config, names: config.get("model_type") in ("owlvit", "owlv2"),
        ("images_nhwc", "tokens", "query_images_nhwc", "photos"),
        owl,
    ),
    "clipseg": Family(
        lambda config, names: config.get("model_type") == "clipseg",
        ("images_nhwc", "tokens", "example_images_nhwc"),
        clipseg,
    ),
    "rf-detr": Family(
        lambda config, names: "transformer.decoder.ref_point_head.layers.0.weight" in names, ("images_nhwc",), detector
    ),
    "autoencoder": Family(
        lambda config, names: config.get("_class_name") == "AutoencoderKL",
        ("images_nhwc", "latents_nhwc"),
        autoencoder,
    ),
    "vitpose": Family(lambda config, names: config.get("model_type") == "vitpose", ("images_nhwc",), pose),
}


def answers(folder):
    """Returns the answers to the inputs in a golden folder, as float32 arrays by name."""
    folder = pathlib.Path(folder)
    path = next(folder.glob("checkpoint.*"))
    files = [folder / name for name in ("config.json", "open_clip_config.json")]
    config = next((json.loads(file.read_text()) for file in files if file.exists()), {})
    with open_files(path) as files:
        names = list(files.shapes)
    family = next((family for family in FAMILIES.values() if family.tells(config, names)), None)
    if family is None:
        raise ValueError(
            f"{str(folder)!r} must be of {', '.join(FAMILIES)}. Received: model_type {config.get('model_type')!r}, "
            f"tensors {names[:3]}"
        )
    io = np.load(folder / "io.npz")  # reads an array when it is asked for
    found = family.answer(path, {name: io[name] for name in family.inputs})
    return {name: keras.ops.convert_to_numpy(array).astype("float32") for name, array in found.items()}


if __name__ == "__main__":
    np.savez(sys.argv[2], **answers(sys.argv[1]))
