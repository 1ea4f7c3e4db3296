"""Conversations that go on: a turn is sent to who answers, and what comes back lands under it, whatever happens."""
