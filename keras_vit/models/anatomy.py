"""The parts of a model's ViT: its blocks, grid, prefix tokens and input, read off its layers."""

import keras

from keras_vit.layers import AdaptiveBlock, PatchEncoder, Patches, QueryTokens, TimeSteps, TransformerBlock, Tubelets
from keras_vit.models.backbone import backbone, input_of
from keras_vit.utils import checks
from keras_vit.utils.keras_private import calls_of, sublayers


def blocks(model):
    """Returns the `TransformerBlock`s of the model's ViT, from the first to the last.

    Raises:
        ValueError: If there is none, or a block is not called exactly once and with nothing but tokens; if some see
            queries too, and so other tokens than the first.
    """
    layers = backbone(model).layers
    if queries := next((layer.name for layer in layers if isinstance(layer, QueryTokens)), None):
        raise ValueError(
            "All blocks must see the same tokens: load the encoder alone, by from_pretrained(..., num_classes=0). "
            f"Received: {model.name!r}, with {queries!r} before its last blocks"
        )
    every = [layer for layer in layers if isinstance(layer, TransformerBlock)]
    for block in every:
        node, *others = calls_of(block)
        if others:
            raise ValueError(
                "Each block must be called once, and by no other model: put a copy into that one, such as of "
                f"keras.models.clone_model. Received: {block.name!r}, called {1 + len(others)} times"
            )
        if isinstance(block, AdaptiveBlock) or set(node.arguments.kwargs) - {"training"}:
            raise ValueError(f"Each block must be called with tokens alone. Received: {block.name!r}")
    return every


def only(model, kind):
    """Returns the model's only layer of a class, at any depth."""
    if not isinstance(model, keras.Model):
        raise ValueError(
            f"The model must be a Keras model with one {kind.__name__} layer. Received: {checks.shown(model)}"
        )
    layers = [layer for layer in sublayers(model) if isinstance(layer, kind)]
    if len(layers) != 1:
        raise ValueError(
            f"The model must have exactly one {kind.__name__} layer. Received: {model.name!r}, with {len(layers)}"
        )
    return layers[0]


def stages(model):
    """Returns the layers of the model's ViT in one list; of a factorised encoder in two, of space and of time."""
    layers = backbone(model).layers
    place = next((i for i, layer in enumerate(layers) if isinstance(layer, TimeSteps)), None)
    return [layers] if place is None else [layers[:place], layers[place:]]


def grid(model, factorised=False):
    """Returns the grid of the patches, `(rows, columns)`; of a model of clips that of tubelets, with `steps` first.

    `factorised` is as in `tubelets`.
    """
    patches = only(model, Patches)
    rows, columns = patches.grid(patches.input.shape)
    layer = tubelets(model, factorised)
    return (rows, columns) if layer is None else (layer.steps, rows // layer.frames, columns)


def tubelets(model, factorised=False):
    """Returns the layer `Tubelets` of a model of clips, `None` of one of images.

    Raises:
        ValueError: For a factorised encoder, unless `factorised`: no block sees all of space and time.
    """
    found = next((layer for layer in sublayers(model) if isinstance(layer, Tubelets)), None)
    if found is not None and found.fold and not factorised:
        raise ValueError(
            "The model must attend to all of space and time at once. "
            f"Received: {model.name!r}, with a spatial and a temporal encoder"
        )
    return found


def num_prefix(model):
    """Returns the number of prefix tokens, those before the patches."""
    return only(model, PatchEncoder).num_prefix


def seen(model):
    """Returns the symbolic input images of the model's ViT."""
    return input_of(backbone(model), [blocks(model)[0].input])
