"""Calls of every operator over sizes."""

from growing import boxes, pictures, points, polygons

CASES = boxes.CASES + polygons.CASES + points.CASES + pictures.CASES
