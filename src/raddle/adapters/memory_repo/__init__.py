"""A project's memory on the disk: the folder of a store, its git repository, and what is derived of them."""
