"""Segments what texts say, or examples show, with CLIPSeg."""

import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_vit.checkpoints.files.own import HEAD_METADATA
from keras_vit.explain.towers import Towers, text_embeddings
from keras_vit.inference.queries import batches
from keras_vit.layers import FiLMDecoder
from keras_vit.layers.functional import Model
from keras_vit.models.backbone import fill
from keras_vit.models.metadata import keep, metadata
from keras_vit.models.open_segmenter import PARTS, decoder_with_pairs
from keras_vit.models.outputs import check_labels
from keras_vit.models.segment_outputs import resized
from keras_vit.preparing.preprocessing import Preparation
from keras_vit.traits import traits_of
from keras_vit.utils import checks
from keras_vit.utils.feeding import run

RULE = "`model` must segment what texts say, such as from_pretrained('hf://CIDAS/clipseg-rd64-refined')."


class _Parts:
    """The towers and the decoder of an open segmenter; arguments and errors as of `segment_prompts`."""

    def __init__(self, model):
        traits_of(model, RULE, structure="open_segmenter")
        self.image, self.text, decoder = map(model.get_layer, PARTS)
        self.decoder = decoder_with_pairs(decoder, False)  # of a run: each image with its own text
        self.sentences = metadata(model).get("prompts") == "texts"  # trained on these alone
        self.preparation = Preparation(keras.Model(self.image.inputs[0], self.image.outputs[0]))
        resize = self.preparation.rule["resize"]
        if resize != "direct":
            raise ValueError(
                "`model` must see all of an image, and the metadata of its first layer say that it is cut. "
                f"Received: resize={resize!r}"
            )

    def tokens_model(self):
        """Returns the model from images to the tokens of the decoder's blocks, one after another."""
        tokens = self.image.outputs[1:]
        return keras.Model(self.image.inputs[0], keras.layers.Concatenate(axis=1)(tokens)), len(tokens)


def segment_prompts(
    model: keras.Model, images: Any, prompts: Sequence[Any] | np.ndarray, tokens: Any = None, *, batch_size: int = 1
) -> list[np.ndarray]:
    """Finds the pixels of images that texts describe, or that are like examples, without training.

    Lüddecke and Ecker 2022 (CLIPSeg, arXiv:2112.10003). Each prompt has a probability of its own at each pixel: there
    is no background, and what is not in the image has low probabilities, not 0. For a mask choose a threshold on images
    of your own, such as 0.4; for the best of several prompts take the largest.

    Images are prepared as by the model's own processor, which squeezes them to a square. The probabilities are resized
    bilinearly to the size of each image.

    Args:
        model: A model from `from_pretrained("hf://CIDAS/clipseg-rd64-refined")` or another CLIPSeg; or of a run of
            `Segment(text=True)`.
        images: Image files or other images that `preprocess` takes, of any sizes; or a single one.
        prompts: A list of texts, such as `["a pipe", "rust"]`, and examples: an array, a Pillow image or a
            `pathlib.Path` of a picture, all of which is the example. Crop it, and darken its background. Or embeddings
            as from `prompt_vectors`, `(prompts, units)`.
        tokens: What makes ids of texts: a `tokenizer`, or the folder or repository that it is read from. Not needed
            without texts, nor by a model with a table of words.
        batch_size: Number of images that are computed at once; a smaller last batch costs as much as a whole one.

    Returns:
        A list with the probabilities for each image: a float32 array, `(height, width, prompts)`, 0..1, of its size.

    Raises:
        TypeError, ValueError: For another model; for prompts that are not as above, a text that is longer than the
            tower's table or another checkpoint's tokenizer; for an example, of a model whose towers were trained on
            texts alone; and as `preprocess`.

    Example:

    >>> [found] = segment_prompts(model, "site.jpg", ["a pipe", "rust"], "clipseg-rd64-refined")
    >>> found.shape, (found[..., 0] > 0.4).mean()
    ((1200, 1600, 2), 0.12)
    """
    from scipy.special import expit

    parts = _Parts(model)
    checks.positive(batch_size=batch_size)
    vectors, (seen, count), results = _vectors(parts, prompts, tokens), parts.tokens_model(), []
    for pixels, sizes in batches(parts.preparation, images, batch_size):
        of_blocks = np.split(run(seen, pixels), count, axis=1)
        logits = keras.ops.convert_to_numpy(parts.decoder([*of_blocks, vectors]))
        results += [resized(expit(each), size) for each, size in zip(logits, sizes)]
    return results


def prompt_vectors(model: keras.Model, prompts: Sequence[Any], tokens: Any = None) -> np.ndarray:
    """Embeds texts and examples for `segment_prompts`, to be kept or mixed.

    The authors train with mixtures of the embeddings of a text and of an example: a weighted mean of both may find more
    than either.

    Args:
        model: As in `segment_prompts`.
        prompts: As in `segment_prompts`.
        tokens: As in `segment_prompts`.

    Returns:
        Float32 array, `(prompts, units)`, of any length.

    Raises:
        TypeError, ValueError: As `segment_prompts`.

    Example:

    >>> text, example = prompt_vectors(model, ["a valve", pathlib.Path("valve.jpg")], source)
    >>> [found] = segment_prompts(model, "plant.jpg", (0.5 * text + 0.5 * example)[None])
    """
    return _vectors(_Parts(model), prompts, tokens)


def _vectors(parts, prompts, tokens):
    """Returns the embeddings of prompts, `(prompts, units)`; arguments and errors as in `segment_prompts`."""
    units = parts.decoder.units
    if getattr(prompts, "ndim", None) == 2:
        vectors = np.asarray(prompts)
        if vectors.dtype.kind != "f" or not len(vectors) or vectors.shape[1] != units or not np.isfinite(vectors).all():
            raise ValueError(
                f"Embeddings of prompts must be finite floats, (prompts, {units}), of this model. "
                f"Received: shape={vectors.shape}, dtype={vectors.dtype}"
            )
        return vectors.astype("float32")
    prompts = list(checks.sequence("prompts", prompts))
    if not prompts:
        raise ValueError("`prompts` must contain a text or an example. Received: an empty list")
    vectors, texts = np.empty((len(prompts), units), "float32"), [isinstance(each, str) for each in prompts]
    if any(texts):
        of_texts = [each for each in prompts if isinstance(each, str)]
        towers = Towers(parts.image, parts.text, 1.0, 0.0)
        vectors[texts] = text_embeddings(towers, tokens, of_texts)
    if not all(texts):
        embed, examples = parts.preparation.model, [each for each in prompts if not isinstance(each, str)]
        if wrong := [each for each in examples if not _is_image(each)]:
            raise ValueError(
                "A prompt must be a text, or an image: an array, a Pillow image or a pathlib.Path. "
                f"Received: {checks.shown(wrong[0]):.100}"
            )
        if parts.sentences:
            raise ValueError(
                "This model was trained on sentences: its image tower has no embeddings that mean what texts do. Pass "
                f"texts. Received: {len(examples)} examples"
            )
        pixels = (pixels for pixels, _ in batches(parts.preparation, examples, 1))
        vectors[np.logical_not(texts)] = np.concatenate([run(embed, each) for each in pixels])
    return vectors


def _is_image(prompt):
    return isinstance(prompt, os.PathLike) or getattr(prompt, "ndim", 0) >= 2 or hasattr(prompt, "convert")


def zero_shot_segmenter(
    model: keras.Model,
    prompts: Sequence[Any] | np.ndarray,
    tokens: Any = None,
    *,
    names: Sequence[str] | None = None,
) -> keras.Model:
    """Builds a segmenter of texts or examples: a model of images alone, with the embeddings of `segment_prompts`.

    It needs no text tower and no tokenizer, and is saved and exported like any other model.

    Args:
        model: As in `segment_prompts`.
        prompts: As in `segment_prompts`.
        tokens: As in `segment_prompts`.
        names: Names of the classes, all different, in the order of the prompts; by default the texts themselves.

    Returns:
        A `keras.Model` from pixels to logits of masks, float32 `(batch, height, width, prompts)`. Each is independent:
        its probability is the sigmoid. It has copies of the weights. `class_names` has the names.

    Raises:
        TypeError, ValueError: As `segment_prompts`; if the names are not as many as the prompts, or a prompt that is
            not a text has none.
    """
    parts = _Parts(model)
    vectors = _vectors(parts, prompts, tokens)
    names = _named(list(prompts) if names is None else checks.sequence("names", names), len(vectors))
    old = parts.decoder
    decoder = FiLMDecoder.from_config({**old.get_config(), "conditions": len(vectors)})
    shared = Model(parts.image.inputs[0], decoder(parts.image.outputs[1:]), name="segmenter")
    decoder.set_weights([vectors.T, *old.get_weights()])
    copy = fill(keras.models.clone_model(shared), shared.get_weights())
    keep(copy, HEAD_METADATA, labels=names)
    return copy


def _named(names, count):
    """Returns the names of classes as a list; raises ValueError unless there is a text for each prompt."""
    names = list(names)
    if len(names) != count or not all(isinstance(name, str) and name.strip() for name in names):
        raise ValueError(
            f"`names` must have a text for each of {count} prompts; without, all prompts must be texts. "
            f"Received: {checks.shown(names):.100}"
        )
    if len(set(names)) != count:
        raise ValueError(f"Each name must be given once. Received: {checks.shown(names):.100}")
    check_labels(names)
    return names
