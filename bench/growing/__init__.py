# SPDX-License-Identifier: Apache-2.0
"""Calls of every operator over sizes."""

from growing import boxes, images, points, polygons

CASES = boxes.CASES + polygons.CASES + points.CASES + images.CASES
