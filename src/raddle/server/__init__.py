"""The other program: a hub for threads over HTTP, on PostgreSQL. Started by `raddle serve`."""
