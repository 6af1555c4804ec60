# SPDX-License-Identifier: Apache-2.0
"""What every part of the package needs: libraries, packages of operators, the system, symbolic extents."""
