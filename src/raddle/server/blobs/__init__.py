"""Blobs of the server: attachments and the bytes of agents' own files, wherever they are kept."""
