"""Stand-ins for packages that are no longer kept, under their own names."""
