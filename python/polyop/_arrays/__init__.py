# SPDX-License-Identifier: Apache-2.0
"""The operators as functions of arrays, the same in every framework, and their calls through the C interface."""
