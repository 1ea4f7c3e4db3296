"""What can be done with a project's memory: runs, entries, artifacts, handoffs, memories, and clones into step."""
