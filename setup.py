"""The wheel's layout; pyproject.toml has everything else.

The folders `recipes` and `saved_models` are next to the package, where people look for them. The wheel has them inside
the package, so that only one name reaches site-packages. An editable install reads them from the checkout.
"""

import sys

from setuptools import find_packages, setup

packages, package_dir = find_packages(include=["keras_vit*"]), {"": "."}
package_data = {
    "keras_vit": ["py.typed"],
    "keras_vit.checkpoints": ["*.csv"],
    "keras_vit.commands": ["*.csv"],
    "keras_vit.inspecting": ["*.html"],
    "keras_vit.reporting": ["*.html", "*.css"],
}
# With folders elsewhere, setuptools makes an editable install by an import hook, which Python asks last: in the folder
# that contains a clone named keras_vit, it takes the clone itself for the package. Else by a path, which it asks first.
if "editable_wheel" not in sys.argv:
    packages += ["keras_vit.recipes", "keras_vit.saved_models"]
    package_dir |= {"keras_vit.recipes": "recipes", "keras_vit.saved_models": "saved_models"}
    package_data["keras_vit.saved_models"] = ["*.keras", "*.txt", "README.md"]

setup(packages=packages, package_dir=package_dir, package_data=package_data)
