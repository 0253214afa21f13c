"""The wheel's layout; everything else stands in pyproject.toml.

`recipes` and `saved_models` lie beside the package, where people look for them, and are installed inside it, so that
only one name reaches site-packages.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["keras_vit*"]), "keras_vit.recipes", "keras_vit.saved_models"],
    package_dir={"keras_vit.recipes": "recipes", "keras_vit.saved_models": "saved_models"},
    package_data={
        "keras_vit.checkpoints": ["*.csv"],
        "keras_vit.report": ["*.html", "*.css"],
        "keras_vit.saved_models": ["*.keras", "*.txt", "README.md"],
    },
)
