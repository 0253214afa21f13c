"""What tasks whose targets are not blended refuse."""

MIXED = ("mixup", "cutmix")


def check_unmixed(recipe, why):
    """Raises ValueError, with why, if a recipe blends its images.

    Args:
        recipe: A `Recipe`.
        why: A sentence, such as `"Numbers are not blended with the images."`.
    """
    mixing = {f"augment.{name}": value for name in MIXED if (value := getattr(recipe.augment, name))}
    if mixing:
        raise ValueError(f"{why} Received: {', '.join(f'{name}={value}' for name, value in mixing.items())}")
