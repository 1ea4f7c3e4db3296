"""raddle: your coding agents' conversations, kept, found, read and gone on with."""

__version__ = "0.1.0"
