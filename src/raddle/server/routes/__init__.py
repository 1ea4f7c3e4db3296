"""The HTTP API: each route reads a request, calls one function, writes an answer."""
