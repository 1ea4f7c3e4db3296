"""The words that a device and a hub exchange."""
