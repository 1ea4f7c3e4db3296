"""The server for agents: a project's memory and its past conversations, over the Model Context Protocol.

What each tool does is a plain function (`*_tools.py`); `serving.py` alone knows the protocol's SDK, which costs most
of a second to import, so that nothing else here may import it.
"""
