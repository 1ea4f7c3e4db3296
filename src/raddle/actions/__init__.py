"""Verbs: what a user can do, written against small ports; no outside world in here."""
