"""Content-addressed bytes: attachments and the source segments of imported sessions."""
