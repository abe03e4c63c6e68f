#!/usr/bin/env python3
"""
Checks the Python environment of the tests: versions must match the requirement files, and modules with compiled code
must import and compute.

    build/venv/bin/python tests/tools/check_venv.py REQUIREMENTS...    prints one line and fails on a mismatch
"""

import importlib
import importlib.metadata
import pathlib
import re
import sys

MODULES = ("cc3d", "highdicom", "mahotas", "mirp", "nibabel", "numpy", "openjpeg", "libjpeg", "pandas", "pydicom", "pynetdicom", "pytest",
           "pywt", "radiomics.shape", "scipy.ndimage", "SimpleITK", "skimage.feature")


def faults(files):
    for name, version in (pin for file in files for pin in re.findall(r"^(\S+)==(\S+)", pathlib.Path(file).read_text(), re.M)):
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = "nothing"
        if found != version:
            yield f"{name}: {version} is required, {found} is installed"
    for name in MODULES:
        try:
            importlib.import_module(name)
        except Exception as error:  # a library built against another NumPy raises exceptions of its own
            yield f"{name} does not import: {str(error).splitlines()[0]}"


if found := next(faults(sys.argv[1:]), None):
    sys.exit(f"tests: the Python environment build/venv is not as required: {found}")
