"""A session of an agent as it happens: which state follows which step, and what each step writes."""
