"""A conversation as a value: messages, registers, the tree over them, and every law they obey."""
