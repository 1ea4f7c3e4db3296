"""Nouns: the values of raddle and their laws. Pure: no clock, no disk, no network of its own."""
