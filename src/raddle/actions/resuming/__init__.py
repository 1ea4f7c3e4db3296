"""A conversation written as another program's own session, so that the program goes on with it. Pure."""
