"""What detectors and segmenters of transformers answer, at published sizes with random weights, and what ours do.

A case is a function of a folder that returns a row. It has `outputs`: the largest differences and values of the
network's outputs, both from the original's pixels; `levels`: the largest and the mean difference of prepared pixels,
0 to 255, from those of the original's processor; and the answers to photographs, each by its own preparation.
"""

import functools
import itertools

import golden_answers
import keras
import numpy as np
import object_models
import scipy.special
import torch
from object_comparison import between, boxes, by_photo, freed, levels, maps, nhwc, numbers, outputs, prepared, theirs

import keras_vit
from keras_vit.inference import queries, segmentation
from keras_vit.inference.queries import Eyes, Queries
from keras_vit.models import box_outputs, segment_outputs
from keras_vit.models.open_detector import features_of
from keras_vit.traits import Traits

STUFF = list(range(80, 133))  # of COCO panoptic
PAIR = ("class", "masks")


@freed
def rf_detr(folder, size):
    """Compares RF-DETR: the chosen proposals, boxes and masks."""
    model, processor = object_models.rf_detr(size)
    processor.save_pretrained(folder)
    masks, rows = object_models.RF_DETR[size][-1], {}
    inner = model.model if masks else model
    photos = object_models.photos("nano" in size)
    images = [prepared(processor, photo)[0] for photo in photos]
    object_models.clear(inner.model, lambda x: model(pixel_values=x), images, model.config.num_queries)
    model.save_pretrained(folder)
    ours = keras_vit.from_checkpoint(folder)
    wanted = {"sets": ours.get_layer("boxes").input}
    wanted |= {"masks": ours.get_layer("masks").output} if masks else {}
    network, classes = keras.Model(ours.input, wanted), model.config.num_labels
    for photo in photos:
        x, size_of = prepared(processor, photo)[0], photo.shape[:2]
        out, first = (theirs(each, pixel_values=x) for each in (model, inner))
        found = network(golden_answers.pixels(ours, nhwc(x)), training=False)
        (stage, *_, last) = (numbers(each) for each in keras.ops.unstack(found["sets"], axis=1))
        pairs = {
            "proposals": (stage[..., 4:], first.enc_outputs_class),
            "proposed boxes": (golden_answers.centers(stage[..., :4]), first.enc_outputs_coord_logits),
            "logits": (last[..., 4:], out.logits),
            "boxes": (golden_answers.centers(last[..., :4]), out.pred_boxes),
        }
        pairs |= {"masks": (found["masks"], out.pred_masks)} if masks else {}
        mine = keras_vit.preprocess(ours, photo)
        least = between(out.logits.sigmoid())
        [right] = processor.post_process_object_detection(out, least, [size_of])
        output = numbers(ours(mine, training=False))[0, :, : 4 + classes]
        edges, labels, scores = box_outputs.likely(output, least, several=True)
        edges = (edges * np.tile(size_of, 2))[:, [1, 0, 3, 2]]
        row = {"outputs": outputs(pairs), "levels": levels(ours, [processor], photo, mine)}
        shown = np.clip(right["boxes"], 0, np.tile(size_of[::-1], 2))  # as Roboflow's own answers
        row["found"] = boxes((edges, scores, labels), (shown, right["scores"], right["labels"]))
        if masks:
            [right] = processor.post_process_instance_segmentation(out, least, target_sizes=[size_of])
            [own] = keras_vit.segment(ours, photo, "instance", threshold=least)
            segments = [(each["class"], each["score"]) for each in own.segments]
            original = [(each["label_id"], each["score"]) for each in right["segments_info"]]
            ids = right["segmentation"].numpy()
            row["instances"] = maps(own.map, np.where(ids > 0, ids - 1, -1), (segments, original))
        rows[f"{size_of[0]} x {size_of[1]}"] = row
    return by_photo(rows)


@freed
def owl(folder, size):
    """Compares OWL-ViT and OWLv2: boxes of texts, and of an example."""
    model, *processors = object_models.owl(size)
    model.save_pretrained(folder)
    processors[0].save_pretrained(folder)
    ours, rows = keras_vit.from_checkpoint(folder), {}
    eyes, ids = Eyes(ours), object_models.texts(5, 16)
    vectors = numbers(eyes.text(ids.astype("int32"), training=False))
    photos = object_models.photos(size in ("OWL-ViT B/32", "OWLv2 B/16"))
    names = Queries([f"class {i}" for i in range(len(ids))], vectors)
    for photo in photos:
        x, target = prepared(processors[1], photo)[0], torch.tensor([photo.shape[:2]])
        out = theirs(model, input_ids=torch.tensor(ids), pixel_values=x)
        pixels = golden_answers.pixels(eyes.image, nhwc(x))
        found = ours({"images": pixels, "texts": ids.astype("int32")}, training=False)
        pairs = {
            "texts": (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), out.text_embeds[0]),
            "logits": (found["logits"], out.logits),
            "boxes": (golden_answers.centers(numbers(found["boxes"])), out.pred_boxes),
        }
        pairs |= {"objectness": (found["objectness"], out.objectness_logits)} if "objectness" in found else {}
        mine = eyes.preparation(photo)
        row = {"outputs": outputs(pairs), "levels": levels(eyes.image, processors, photo, mine)}
        least = between(out.logits.sigmoid().max(-1).values)
        [right] = processors[1].post_process_object_detection(out, least, target)
        [own] = keras_vit.detect(ours, photo, names, threshold=least)
        labels = [names.classes.index(name) for name in own.classes]
        row["found"] = boxes((own.boxes, own.scores, labels), (right["boxes"], right["scores"], right["labels"]))
        if len(photos) > 1 and photo is photos[0]:
            row |= _guided(model, processors[1], ours, eyes, photo, photos[1], x)
        rows[f"{photo.shape[0]} x {photo.shape[1]}"] = row
    return by_photo(rows)


def _guided(model, processor, ours, eyes, photo, example, x):
    """Compares the embedding of an example, and what is found by it and left by suppression."""
    q = prepared(processor, example)[0]
    with torch.no_grad():
        features = model.image_embedder(q)[0]
        embedding, at, _ = model.embed_image_query(features.flatten(1, 2), features)
    out = theirs(model.image_guided_detection, pixel_values=x, query_pixel_values=q)
    pixels = golden_answers.pixels(eyes.image, nhwc(q))
    raw, places, objects = (numbers(each) for each in _seen(eyes, pixels))
    objects = objects[0] if objects.size else None
    mine = queries.patch_of(raw[0], places[0], objects, None, None)
    found = keras_vit.example_queries(ours, {"example": example})
    scores = out.logits.max(-1).values.sigmoid()
    least = between(scores, 100, 300)
    [right] = processor.post_process_image_guided_detection(out, least, 0.3, torch.tensor([photo.shape[:2]]))
    [own] = keras_vit.detect(ours, photo, found, threshold=least, suppression=0.3)
    best = own.scores.max() + 1e-6
    shares = np.clip((own.scores - 0.1 * best) / (0.9 * best), 0, 1)
    shown, none = shares > 0, np.zeros(len(shares))
    vector = outputs({"vector": (raw[0, mine], embedding.reshape(-1))})["vector"]
    original = right["boxes"], right["scores"], np.zeros(len(right["scores"]))
    return {
        "example": {"other patch": int(mine != int(at.reshape(-1)[0])), **vector},
        "found by it": boxes((own.boxes[shown], shares[shown], none[shown]), original),
    }


def _seen(eyes, pixels):
    """Returns the embeddings, boxes and objectness of the patches of an image; the last is empty without that head."""
    x = features_of(eyes.heads, eyes.image(pixels, training=False))
    objects = queries.objectness_of(eyes.heads, x)
    head = eyes.heads
    return head.get_layer("logits").embed(x), head.get_layer("places")(x), np.empty(0) if objects is None else objects


@freed
def eomt(folder, size, kind, depth=None):
    """Compares EoMT: classes, masks and maps of one kind."""
    model, *processors = object_models.eomt(size, kind, depth)
    model.save_pretrained(folder)
    processors[0].save_pretrained(folder)
    ours, rows = keras_vit.from_checkpoint(folder), {}
    about = Traits(ours)
    for photo in object_models.photos(size == "small"):
        shape = photo.shape[:2]
        x, given = prepared(processors[1], photo)
        out = [theirs(model, pixel_values=each[None]) for each in x]  # windows one by one
        classes, masks = (torch.cat([getattr(each, f"{name}_queries_logits") for each in out]) for name in PAIR)
        answers = [numbers(ours(each[None], training=False)) for each in golden_answers.pixels(ours, nhwc(x))]
        own_classes, own_masks = segment_outputs.unpacked(np.concatenate(answers), about.classes, about.size)
        pairs = {"classes": (own_classes, classes), "masks": (np.moveaxis(own_masks, -1, 1), masks)}
        cut = segmentation.windows if kind == "semantic" else segmentation.padded
        mine = cut(about.preparation, photo)
        mine = mine[1] if kind == "semantic" else mine[0][None]
        row = {"outputs": outputs(pairs), "levels": levels(ours, processors, photo, mine)}
        joined = type(out[0])(class_queries_logits=classes, masks_queries_logits=masks)
        if kind == "semantic":
            joined.patch_offsets = given["patch_offsets"]
            [right] = processors[1].post_process_semantic_segmentation(joined, [shape])
            row["map"] = maps(keras_vit.segment(ours, photo, kind)[0].map, right.numpy())
        else:
            post, options = processors[1].post_process_instance_segmentation, {"threshold": 0.2}
            stuff = {}
            if kind == "panoptic":
                options |= {"mask_threshold": 0.5, "threshold": 0.3}
                post, stuff = processors[1].post_process_panoptic_segmentation, {"stuff_classes": STUFF}
                stuff |= {"overlap_mask_area_threshold": 0.1}
            [right] = post(joined, target_sizes=[shape], **options, **stuff)
            options |= {"overlap_threshold": 0.1} if stuff else {}
            [own] = keras_vit.segment(ours, photo, kind, **options)
            segments = [(each["class"], each["score"]) for each in own.segments]
            original = [(each["label_id"], each["score"]) for each in right["segments_info"]]
            row["map"] = maps(own.map, right["segmentation"].numpy(), (segments, original))
        rows[f"{shape[0]} x {shape[1]}"] = row
    return by_photo(rows)


@freed
def clipseg(folder, size):
    """Compares CLIPSeg: masks of texts, and of an example."""
    model, *processors = object_models.clipseg(size)
    model.save_pretrained(folder)
    processors[0].save_pretrained(folder)
    ours, rows = keras_vit.from_checkpoint(folder), {}
    image, text, decoder = map(ours.get_layer, ("image", "text", "decoder"))
    photos = object_models.photos()
    ids = object_models.texts(3, 77)
    ids[ids == 0] = 49407  # CLIP's padding
    example = prepared(processors[1], photos[1])[0]
    for photo, words in zip(photos if size == "rd64-refined" else photos[:1], ids):
        x = prepared(processors[1], photo)[0]
        out = theirs(model, input_ids=torch.tensor(words[None]), pixel_values=x)
        shown = theirs(model, conditional_pixel_values=example, pixel_values=x)
        vectors = numbers(text(words[None].astype("int32"), training=False))
        seen = numbers(image(golden_answers.pixels(image, nhwc(example)), training=False)[0])
        _, *tokens = image(golden_answers.pixels(image, nhwc(x)), training=False)
        pairs = {"text": (vectors, out.conditional_embeddings), "example": (seen, shown.conditional_embeddings)}
        for name, vector, answer in (("logits", vectors, out), ("example's logits", seen, shown)):
            pairs[name] = (numbers(decoder([*tokens, vector]))[0, ..., 0], answer.logits.reshape(352, 352))
        [own] = keras_vit.segment_prompts(ours, photo, np.concatenate([vectors, seen]))
        both = scipy.special.expit(np.stack([each.logits.reshape(352, 352) for each in (out, shown)]))
        right = torch.nn.functional.interpolate(torch.tensor(both)[None], photo.shape[:2], mode="bilinear")[0]
        mine = keras_vit.preprocess(image, photo)
        row = {"outputs": outputs(pairs), "levels": levels(image, processors, photo, mine)}
        row["probabilities"] = outputs({"masks": (own, right.permute(1, 2, 0))})["masks"]
        rows[f"{photo.shape[0]} x {photo.shape[1]}"] = row
    return by_photo(rows)


def cases():
    """Returns functions of a folder by the names of their rows."""
    part = functools.partial
    found = {f"transformers RfDetr {size}": part(rf_detr, size=size) for size in object_models.RF_DETR}
    found |= {f"transformers {size}": part(owl, size=size) for size in object_models.OWL}
    for size, kind in itertools.product(object_models.DINO, object_models.EOMT):
        depth = None if size in ("small", "base") or (size, kind) == ("large", "panoptic") else 6
        if size != "giant" or kind == "panoptic":
            name = f"transformers Eomt {size}, {kind}" + (f", depth {depth}" if depth else "")
            found[name] = part(eomt, size=size, kind=kind, depth=depth)
    return found | {f"transformers CLIPSeg {size}": part(clipseg, size=size) for size in object_models.CLIPSEG}
