"""A thread as bytes for somebody else: one form a file, one registry; pure, so that every way out writes
the same.
"""
