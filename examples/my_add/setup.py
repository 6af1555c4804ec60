# SPDX-License-Identifier: Apache-2.0
"""Builds my_extension: python setup.py build_ext --build-lib FOLDER"""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="my_extension",
    ext_modules=[CppExtension("my_extension", ["my_add.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
