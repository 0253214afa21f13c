"""The wheel's layout; pyproject.toml has everything else.

The folders `recipes` and `saved_models` are next to the package, where people look for them. The wheel has them inside
the package, so that only one name reaches site-packages.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["keras_vit*"]), "keras_vit.recipes", "keras_vit.saved_models"],
    package_dir={"keras_vit.recipes": "recipes", "keras_vit.saved_models": "saved_models"},
    package_data={
        "keras_vit": ["py.typed"],
        "keras_vit.checkpoints": ["*.csv"],
        "keras_vit.report": ["*.html", "*.css"],
        "keras_vit.saved_models": ["*.keras", "*.txt", "README.md"],
    },
)
