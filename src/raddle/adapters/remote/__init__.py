"""A sync server as this machine reaches it. All that knows HTTP on this side is here."""
