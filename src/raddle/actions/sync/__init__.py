"""Sync: what a device and a hub do so that both hold the same, whoever was away and for how long."""
