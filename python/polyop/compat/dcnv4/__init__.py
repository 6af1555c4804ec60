# SPDX-License-Identifier: Apache-2.0
"""The package DCNv4, with its names and arguments, also on the CPU.

`polyop.compat.install("DCNv4")` makes `import DCNv4` find it.
"""

from polyop.compat.dcnv4 import ext, functions, modules
from polyop.compat.dcnv4.functions import DCNv4Function, FlashDeformAttnFunction
from polyop.compat.dcnv4.modules import DCNv4, FlashDeformAttn

__all__ = ["DCNv4", "DCNv4Function", "FlashDeformAttn", "FlashDeformAttnFunction", "ext", "functions", "modules"]
