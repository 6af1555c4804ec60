# SPDX-License-Identifier: Apache-2.0
"""The package `correlation_package` of FlowNet2, PWC-Net and others: `correlation.Correlation`."""

from __future__ import annotations

from polyop.compat.correlation_package.correlation import Correlation, CorrelationFunction

__all__ = ["Correlation", "CorrelationFunction"]
