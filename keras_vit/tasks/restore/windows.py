"""What tasks on windows of images ask of settings and data: images are cut out, and never resized."""


def check_settings(name, recipe):
    """Raises ValueError, with the name of a task, unless a recipe cuts images out."""
    if (recipe.augment.crop, recipe.data.resize) != ("window",) * 2:
        raise ValueError(
            f"{name} cuts images out and never resizes them: augment.crop and data.resize must be 'window'. "
            f"Received: augment.crop={recipe.augment.crop!r}, data.resize={recipe.data.resize!r}"
        )


def check_sizes(source, size, what):
    """Raises ValueError if images of a split are smaller than a window.

    Args:
        source: The split, a `data.memory.Source`.
        size: `(height, width)` of the window.
        what: Where the size is from, in words.
    """
    small = [(name, sides) for name, sides in source.sizes() if sides[0] < size[0] or sides[1] < size[1]]
    if small:
        name, sides = small[0]
        raise ValueError(
            f"Images must have {size[0]} x {size[1]} pixels or more, {what}. "
            f"Received: {len(small)} smaller ones, such as {name!r} of {sides[0]} x {sides[1]}"
        )
