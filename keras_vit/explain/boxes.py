"""What the boxes of a detector attend to."""

import keras
import numpy as np
from keras import ops

from keras_vit.explain import inside
from keras_vit.layers import DeformableDecoder, QueryDecoder, SetBoxes
from keras_vit.models import anatomy


def attention_of_boxes(model: keras.Model, images) -> np.ndarray:
    """Returns where each box of a detector looks: its attention to the patches in the last block, averaged over heads.

    Of a query of DETR's decoder, its cross-attention (Carion et al. 2020, arXiv:2005.12872, figure 6); of a box's own
    token, the attention of the encoder's last block (Fang et al. 2021, arXiv:2106.00666, section 4.5); of a query with
    deformable attention, the places that it chose in the last block, each shared among the four patches around it. Of a
    model of clips, the patches are those of the middle time step.

    Args:
        model: A model of `keras_vit.Detect` with `head="decoder"`, `"tokens"` or `"deformable"`; or an RF-DETR; or a
            model of `keras_vit.DetectClips` with `head="decoder"`.
        images: Array, `(batch, height, width, channels)`, 0..255; or of clips.

    Returns:
        float32 array, `(batch, boxes, rows, columns)`, in the order of the model's boxes. A map of `"decoder"` sums to
        one; of `"tokens"` to at most one, since tokens attend to each other too; of `"deformable"` to at most one,
        since places may lie outside the image.

    Raises:
        ValueError: If the model's boxes have no queries or tokens, or the images do not fit it.
    """
    decoder = next((layer for layer in model.layers if isinstance(layer, (DeformableDecoder, QueryDecoder))), None)
    boxes = next((layer for layer in model.layers if isinstance(layer, SetBoxes)), None)
    if boxes is None:
        raise ValueError(
            f"The model must be a detector with queries or tokens of boxes. Received: {model.name!r}, which has neither"
        )
    prefix, most, grid = anatomy.num_prefix(model), boxes.output.shape[1], anatomy.grid(model)[-2:]

    def attended(model, images):
        if decoder is None:
            return inside.scores(model, images)[-1][:, :, prefix - most : prefix, prefix:].mean(1)
        inputs = decoder.input if isinstance(decoder.input, list) else [decoder.input]
        tokens = inside.run(model, inputs, images)
        tokens = tokens if isinstance(decoder, DeformableDecoder) else tokens[0]
        return ops.convert_to_numpy(decoder(tokens, return_attention_scores=True)[1]).mean(1)

    return inside.in_parts(attended, model, images).reshape(-1, most, *grid)
