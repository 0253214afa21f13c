"""A tower that reads images, or texts, and a text decoder in one model."""

import keras
from keras import ops

from keras_vit.layers import Words
from keras_vit.layers.functional import Model
from keras_vit.models.backbone import outputs_of
from keras_vit.models.inputs import CLIPS, IMAGES
from keras_vit.utils import checks

READS = {  # by what a model writes about: its tower, its input and its own name
    "images": ("image", "images", "captioner"),
    "texts": ("source", "sources", "translator"),
}
MARKS = ("start", "end", "pad")  # ids in the metadata of the decoder's layer `words`


def captioner(image: keras.Model, decoder: keras.Model, *, start: int, end: int, pad: int | None = None) -> keras.Model:
    """Joins an image tower and a text decoder: a model that writes texts about images. Or a text tower, to translate.

    With a text tower it is the encoder and decoder of Vaswani et al. 2017 (arXiv:1706.03762). Both parts are nested
    models, `image`, or `source` for a text tower, and `text`, which `get_layer` returns. They share their layers and
    weights with the models that are passed. The ids are stored in the metadata of the decoder's layer `words`, where
    `generate_text` reads them.

    The model itself is for training: from the words up to each place, it computes the logits of the next. `texts`
    begin with `start`, and the labels are the same texts without it.

    Args:
        image: A model from images to tokens, such as `vit(..., pooling="none", num_classes=0)`; or from clips, such as
            `video_vit(..., pooling="none", num_classes=0)`. Or one from texts, `text_tower(..., pooling="none")`,
            whose texts are padded to exactly its `length`.
        decoder: A model from `text_decoder` with `context_width`, the tokens' width. With `mask_context` it does not
            attend to the source's padding, the `masked_id` of the text tower.
        start: The id before each text.
        end: The id after each text.
        pad: Id of the padding token; `None` for `end`. Defaults to `None`.

    Returns:
        A functional `keras.Model` from `{"images": (batch, height, width, channels), "texts": (batch, words)}` to
        logits, `(batch, words, vocabulary)`, float32. Clips are `"images"` of an axis more. With a text tower,
        `"sources"`, int32 ids, `(batch, length)`, is in place of the images.

    Raises:
        ValueError: For models of other inputs or outputs, of two widths, or an id that the decoder does not have.

    Example:

    >>> image = keras_vit.vit("Ti/16", pooling="none", num_classes=0)
    >>> text = keras_vit.text_decoder(vocabulary=99, length=12, width=64, depth=2, num_heads=4, context_width=192)
    >>> captioner(image, text, start=0, end=1).output_shape
    (None, None, 99)
    """
    ranks = [len(tensor.shape) for tensor in [*(getattr(image, "inputs", None) or ()), *outputs_of(image)]]
    of_texts = ranks == [2, 3] and "int" in image.inputs[0].dtype
    if ranks not in ([IMAGES, 3], [CLIPS, 3]) and not of_texts:
        raise ValueError(
            "`image` must be a functional Keras model from images to tokens, such as vit(..., pooling='none', "
            "num_classes=0), or from texts to tokens, text_tower(..., pooling='none'). "
            f"Received: {checks.shown(getattr(image, 'name', image))}"
        )
    words, inputs = words_of(decoder, "decoder"), decoder.input
    if not isinstance(inputs, dict):
        raise ValueError(f"`decoder` must have a `context_width`. Received: {decoder.name!r} without one")
    widths = image.outputs[0].shape[-1], inputs["context"].shape[-1]
    if widths[0] != widths[1]:
        raise ValueError(
            f"The decoder's `context_width` must be that of the {'text' if of_texts else 'image'}'s tokens, "
            f"{widths[0]}. Received: {widths[1]}"
        )
    if "context_mask" in inputs and not (of_texts and "mask" in {layer.name for layer in image.layers}):
        raise ValueError(
            "mask_context=True needs a text tower with `masked_id`, the id of padding. "
            f"Received: {image.name!r} without it"
        )
    marks = dict(zip(MARKS, (start, end, end if pad is None else pad)))
    checks.whole(**marks)
    for mark, id in marks.items():
        if id >= words.vocabulary:
            raise ValueError(f"`{mark}` must be below the vocabulary, {words.vocabulary}. Received: {mark}={id}")
    words.metadata = words.metadata | {mark: int(id) for mark, id in marks.items()}

    tower, given, name = READS["texts" if of_texts else "images"]
    image = Model(image.inputs[0], image.outputs[0], name=tower)
    text = Model(inputs, decoder.outputs[0], name="text")
    source = keras.Input(image.input_shape[1:], dtype=image.inputs[0].dtype, name=given)
    texts = keras.Input((None,), dtype="int32", name="texts")
    logits = text({"texts": texts, **context_for(text, image, source)})
    return Model({given: source, "texts": texts}, logits, name=name)


def context_for(decoder, tower, given, **settings):
    """Returns a decoder's inputs beside its texts, by name: what a tower reads in images or ids, and what is padding.

    Args:
        decoder: A model from `text_decoder` with a context.
        tower: The model that reads; if the decoder masks its context, a text tower with `masked_id`.
        given: What it reads, one tensor.
        settings: Of the tower's call, such as `training=False`.
    """
    context = {"context": tower(given, **settings)}
    if "context_mask" in decoder.input:
        context["context_mask"] = ops.not_equal(given, tower.get_layer("mask").pad)
    return context


def words_of(model, name="model"):
    """Returns the layer `words` of a text decoder; raises ValueError for another model."""
    layers = {layer.name: layer for layer in getattr(model, "layers", ())}
    if not isinstance(layers.get("words"), Words) or "block_0" not in layers or len(model.output_shape) != 3:
        raise ValueError(
            f"`{name}` must be a model from keras_vit.text_decoder. "
            f"Received: {checks.shown(getattr(model, 'name', model))}"
        )
    return layers["words"]


def parts_of(model):
    """Returns the tower that reads, or `None`, and the decoder of one that writes; raises ValueError for another."""
    if is_captioner(model) or is_translator(model):
        return model.get_layer("source" if is_translator(model) else "image"), model.get_layer("text")
    words_of(model)
    if isinstance(model.input, dict):
        raise ValueError(
            "A decoder with a context must be joined with a tower by keras_vit.captioner. "
            f"Received: {model.name!r} alone"
        )
    return None, model


def is_captioner(model):
    """Returns whether a model writes texts about images."""
    return _writes_by(model, "image")


def is_translator(model):
    """Returns whether a model writes texts from texts."""
    return _writes_by(model, "source")


def _writes_by(model, tower):
    layers = {layer.name: layer for layer in getattr(model, "layers", ())}
    inputs = getattr(layers.get("text"), "input", None)  # a text tower, too, may be called so: it reads no image
    return tower in layers and isinstance(inputs, dict) and "context" in inputs and isinstance(model.input, dict)
