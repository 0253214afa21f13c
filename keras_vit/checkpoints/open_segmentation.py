"""The family of segmenters of what texts say: their decoder, brought together with an image and a text tower."""

from keras_vit.checkpoints.formats import huggingface_clipseg
from keras_vit.layers import FiLMDecoder, Patches
from keras_vit.models import anatomy
from keras_vit.models.open_segmenter import PARTS, open_segmenter

FIXED = ("num_classes", "pooling", "pool", "final_norm", "representation_size", "num_registers")


def joined(files, text, request, load):
    """Returns the segmenter in some files; arguments and errors as of `open_detection.joined`.

    It sees images of the size of the files' processor, unless the caller asks for another.
    """
    overrides, source = request.overrides, files.part("masks")
    if wrong := [f"{name}={overrides[name]!r}" for name in FIXED if overrides.get(name) is not None]:
        raise ValueError(
            "A segmenter of what texts say needs its image tower as it is: for that tower alone, pass part='image'. "
            f"Received: {', '.join(wrong)}"
        )
    size = {"image_size": huggingface_clipseg.size_of(source.processor)}
    image, _ = load(files, "image", request._replace(overrides=size | overrides, head="require"))
    blocks = huggingface_clipseg.blocks_of(source, len(anatomy.blocks(image)))
    patch = anatomy.only(image, Patches).patch_size
    if patch[0] != patch[1]:
        raise ValueError(f"The decoder's patches must be square. Received: patch_size={patch}")
    options = {"grid": tuple(anatomy.grid(image)), "patch_size": patch[0]}
    options |= {"dtype": overrides["dtype"]} if "dtype" in overrides else {}
    masks, _ = load(files, "masks", request._replace(overrides=options, metadata=None, head=None))
    loaded = masks.get_layer(PARTS[2])
    decoder = FiLMDecoder.from_config(loaded.get_config())
    model = open_segmenter(image, text, decoder, blocks)
    for own, source_weight in zip(decoder.weights, loaded.weights, strict=True):
        own.assign(source_weight)
    return model
