"""A program works on a phase of a run: the phase begins and ends with it, and its metrics come together in entries."""
