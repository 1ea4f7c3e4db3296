"""What people call an agent beside its name. Apart from the importers, for who needs none of them.

Were it spelled twice, one command would know an agent that another does not.
"""

from __future__ import annotations

SHORT_FOR = {"claude": "claude-code", "gemini": "gemini-cli"}
"""What people call an agent -> its name."""
