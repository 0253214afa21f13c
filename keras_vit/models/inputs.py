"""What a model takes: images alone, or images and more, by name."""

from keras_vit.models.backbone import image_tower, input_shape_of

IMAGES = 4  # axes of a batch of images


def image_shape(model):
    """Returns `(height, width, channels)` of the images that a model takes, alone or among other inputs."""
    return tuple(input_shape_of(model)[1:])


def metadata_of(model):
    """Returns the metadata that are saved with a model, or with its image tower: a dictionary that may be changed."""
    return image_tower(model).get_layer("rescale").metadata


def fed(examples, inputs):
    """Returns what a model is called with: the images of examples, or a dictionary of all its inputs.

    Args:
        examples: Dictionary of arrays or tensors, an entry for each image.
        inputs: `inputs` of the task.
    """
    return examples["images"] if len(inputs) == 1 else {name: examples[name] for name in inputs}
