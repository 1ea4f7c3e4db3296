"""Two pipelines to read and to run, each of two phases: a model is trained and evaluated, a program built and tested.

Everything that raddle itself knows is phases, entries, artifacts and handoffs. The words of a field of work are here
and nowhere else; a test holds the other modules to that.
"""
