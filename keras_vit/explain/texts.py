"""Where in images words are: what a text means, a written word read, and an answer was found."""

import functools

import keras
import numpy as np
from keras import ops

from keras_vit.explain import inside
from keras_vit.explain.embedding import unit
from keras_vit.explain.relevance import gradients
from keras_vit.explain.towers import text_vectors, towers_of
from keras_vit.generation.decoding import blocks_of
from keras_vit.layers import TransformerBlock
from keras_vit.models import anatomy
from keras_vit.models.between import between
from keras_vit.models.by_frames import is_by_frames
from keras_vit.models.inputs import CLIPS, image_shape, table_of
from keras_vit.preparing import pixel_range
from keras_vit.text.tokenizer import listed
from keras_vit.traits import traits_of
from keras_vit.utils import checks, clip_files

AT_ONCE = 8  # images


def attention_of_text(model: keras.Model, images, texts, tokens=None, against: str | None = None) -> np.ndarray:
    """Computes where images show what texts say: the similarity of each patch with each text.

    Zhou et al. 2022 (MaskCLIP, arXiv:2112.01071), section 3.2: in the last block, and in attention pooling, a patch
    attends to itself alone. It is then brought to the common space as the whole image is.

    Args:
        model: A model with two towers, as from `keras_vit.two_towers` or with `part="both"`.
        images: Array, `(batch, height, width, channels)`, 0..255, such as from `keras_vit.preprocess`; clips if the
            model takes clips, `(batch, frames, height, width, channels)`.
        texts: A text or several.
        tokens: As in `keras_vit.zero_shot`; `None` for the table of words in the model.
        against: A text whose map is subtracted, such as `"a photo"`, so that what is the same for any text is left out;
            `None` for none.

    Returns:
        float32 array, `(batch, texts, rows, columns)`: cosines, -1 to 1, or their differences. Of clips `(batch, texts,
        steps, rows, columns)`.

    Raises:
        TypeError, ValueError: As `keras_vit.zero_shot`; for images that do not fit the model, or an image tower that
            is no ViT of this package.
    """
    towers = towers_of(model)
    texts = listed(texts)
    if not texts:
        raise ValueError("Each text must have a word. Received: no text")
    vectors = text_vectors(towers, tokens, texts if against is None else [*texts, against])
    if is_by_frames(towers.image):
        raise ValueError(
            "The model must see all frames of a clip at once: pass the model of images, and frames as images. "
            f"Received: {model.name!r}, which sees each frame alone"
        )
    last = anatomy.blocks(towers.image)[-1]
    prefix, grid = anatomy.num_prefix(towers.image), anatomy.grid(towers.image)
    pool = towers.image.get_layer("pool")

    def cosines(vit, images):
        x, *sources = keras.tree.flatten(inside.run(vit, [last.input], images)[0])
        if sources:
            raise ValueError(f"The image tower must keep all tokens. Received: {vit.name!r}, which merges them")
        alone = ops.eye(x.shape[1], dtype="bool")[None, None]
        y = last(x, attention_mask=alone, training=False)
        y = between(last.output, pool.input, y)[:, prefix:]  # (batch, patches, width)
        y = ops.reshape(y, (-1, 1, y.shape[-1]))
        y = pool(ops.repeat(y, prefix + 1, axis=1))  # each patch instead of every token
        y = ops.convert_to_numpy(ops.cast(between(pool.output, vit.outputs[0], y), "float32"))
        return np.moveaxis((unit(y) @ vectors.T).reshape(len(images), *grid, -1), -1, 1)

    maps = inside.in_parts(cosines, towers.image, images)
    return maps if against is None else maps[:, :-1] - maps[:, -1:]


def attention_of_words(model: keras.Model, images, ids) -> np.ndarray:
    """Returns where a captioner looked for each word: the attention of its decoder, averaged over blocks and heads.

    As Xu et al. 2015 (arXiv:1502.03044), figure 3.

    Args:
        model: A model as from `keras_vit.captioner`.
        images: Array, `(batch, height, width, channels)`, 0..255, such as from `keras_vit.preprocess`; or clips, as in
            `attention_of_text`.
        ids: Ids of the texts with their start, `(batch, length)`, as `keras_vit.generate_text` returns them.

    Returns:
        float32 array, `(batch, length - 1, [steps,] rows, columns)`: for each id after the first, what was read to
        write it, or, for one of a prompt, what would have been. Those after the end of a text mean nothing. A map sums
        to at most one.

    Raises:
        ValueError: If the model is no captioner, or images and ids do not fit it.
    """
    traits_of(model, "The model must be one as from keras_vit.captioner.", structure="captioner")
    image, decoder = model.get_layer("image"), model.get_layer("text")
    images, ids = _both(model, images, ids)
    prefix, grid = anatomy.num_prefix(image), anatomy.grid(image)
    blocks = blocks_of(decoder)
    entering = [block.input for block in blocks]

    def read(images, ids):
        inputs = {"texts": ops.convert_to_tensor(ids[:, :-1]), "context": image(images, training=False)}
        maps = []
        for block, (x, context, *mask) in zip(blocks, inside.computed(decoder.input, entering, inputs)):
            more = {"attention_mask": mask[0]} if mask else {}
            *_, scores = block(x, context, use_causal_mask=True, return_attention_scores=True, training=False, **more)
            maps.append(ops.convert_to_numpy(scores).mean(1))
        return np.mean(maps, axis=0)[..., prefix:]  # (batch, words, patches)

    return _in_parts(read, images, ids).reshape(len(ids), -1, *grid)


def attention_of_answer(model: keras.Model, images, ids, classes=None) -> tuple[np.ndarray, np.ndarray]:
    """Computes the relevance of each patch and each word for an answer of ViLT.

    Chefer et al. 2021 (arXiv:2103.15679), section 3.1, equations 5 and 6, for one encoder of two modalities: each
    block's attention is weighted by the gradient of the answer's logit.

    Args:
        model: A model as from `keras_vit.vilt`, with a head.
        images: Array, `(batch, height, width, channels)`, 0..255, such as from `keras_vit.preprocess`.
        ids: Ids of the questions, `(batch, length)`.
        classes: Index of each image's answer, `(batch,)`, or one for all; the likeliest answers if `None`.

    Returns:
        Two float32 arrays, at least 0: of patches `(batch, rows, columns)`, and of words `(batch, length)`.

    Raises:
        ValueError: For another model, an answer that it does not have, or images and ids that do not fit it.
        NotImplementedError: On a backend other than TensorFlow and JAX.
    """
    traits_of(model, "The model must be one as from keras_vit.vilt, with a head.", reads_both=True)
    images, ids = _both(model, images, ids)
    if classes is None:
        classes = _in_parts(functools.partial(_logits, model), images, ids).argmax(-1)
    classes = np.full(len(images), classes) if np.ndim(classes) == 0 else classes
    classes = checks.class_indices(classes, model.output_shape[-1], len(images), "classes")
    relevance = _in_parts(functools.partial(_relevance, model), images, ids, classes)
    words = ids.shape[1]
    return relevance[:, words + 1 :].reshape(-1, *anatomy.grid(model)), relevance[:, :words]


def _logits(model, *examples):
    return ops.convert_to_numpy(model(_given(*examples), training=False))


def _relevance(model, images, ids, classes):
    """Returns the relevance of all tokens for the first, which is pooled, `(batch, tokens)`."""
    blocks = [layer for layer in model.layers if isinstance(layer, TransformerBlock)]
    states = inside.computed(model.input, [block.input for block in blocks], _given(images, ids))
    upstream = np.float32(classes[:, None] == np.arange(model.output_shape[-1]))
    end, weighted = model.outputs[0], []
    for block, state in reversed([*zip(blocks, states)]):
        x, *mask = keras.tree.flatten(state)
        more = {"attention_mask": mask[0]} if mask else {}

        def pulled_back(values, block=block, more=more, end=end, upstream=upstream):
            y = between(block.output, end, block(values[0], scores_offset=values[1], training=False, **more))
            return ops.sum(ops.cast(y, "float32") * upstream)

        *_, scores = block(x, return_attention_scores=True, training=False, **more)
        scores = ops.convert_to_numpy(scores)
        upstream, slope = gradients(pulled_back, [x, np.zeros_like(scores)])
        weighted.append(np.maximum(slope * scores, 0).mean(1))  # (batch, tokens, tokens)
        end = keras.tree.flatten(block.input)[0]  # the output of the block before
    flow = own_place = np.eye(weighted[0].shape[-1], dtype="float32")
    for each in reversed(weighted):
        flow = flow + each @ flow
    return (flow - own_place)[:, 0]


def _given(images, ids):
    return {"images": ops.convert_to_tensor(images, "float32"), "texts": ops.convert_to_tensor(ids)}


def _both(model, images, ids):
    """Returns images and ids after checking that there are as many of each and that they fit the model."""
    shape, ids = image_shape(model), np.asarray(ids)
    if len(shape) == CLIPS - 1:
        images = clip_files.checked(images, shape, value_range=pixel_range.range_of(model))
    else:
        images = pixel_range.checked(model, images, shape)
    rows = table_of(model)[1]
    if ids.ndim != 2 or ids.dtype.kind not in "iu" or len(ids) != len(images) or ids.shape[1] < 2:
        raise ValueError(
            f"`ids` must be integers ({len(images)}, length), at least two each. Received: {ids.shape}, {ids.dtype}"
        )
    if ids.min() < 0 or ids.max() >= rows:
        raise ValueError(f"`ids` must be from 0 to {rows - 1}. Received: {ids.min()} to {ids.max()}")
    return images, ids.astype("int32")


def _in_parts(function, *arrays):
    """Applies a function to a few images at a time; see `inside.in_parts`."""
    parts = [slice(i, i + AT_ONCE) for i in range(0, len(arrays[0]), AT_ONCE)]
    return np.concatenate([function(*(array[part] for array in arrays)) for part in parts], dtype="float32")
