"""One module a family of commands; each is imported only when one of its commands runs."""
