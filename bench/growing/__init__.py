"""Calls of every operator over sizes."""

from growing import boxes, pictures, points

CASES = boxes.CASES + points.CASES + pictures.CASES
