"""Replacements for packages that are no longer maintained, with their names and arguments."""
