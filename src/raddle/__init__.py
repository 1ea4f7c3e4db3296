"""raddle: your coding agents' conversations, kept, found, read and gone on with.

The public names are loaded when they are first asked for (PEP 562), so that `import raddle` costs nothing.
Their types stand in `__init__.pyi`.
"""

__version__ = "0.1.0"

_HOMES = {
    "record": "raddle.apps.library.session",
    "Session": "raddle.apps.library.session",
    "StreamedReply": "raddle.apps.library.streamed_reply",
    "ToolRun": "raddle.apps.library.tool_run",
    "open": "raddle.apps.library.store",
    "Store": "raddle.apps.library.store",
    "PhaseAdapter": "raddle.apps.library.phase_adapter",
    "Thread": "raddle.model.threads.thread",
    "ThreadSummary": "raddle.model.threads.summary",
    "Message": "raddle.model.threads.message",
    "ToolCall": "raddle.model.threads.message",
    "Usage": "raddle.model.threads.message",
    "AgentState": "raddle.model.threads.agent_state",
    "Handoff": "raddle.model.memory.handoff",
    "Evidence": "raddle.model.memory.handoff",
    "RaddleError": "raddle.model.errors",
    "UserError": "raddle.model.errors",
    "NotFound": "raddle.model.errors",
    "Ambiguous": "raddle.model.errors",
    "InvalidInput": "raddle.model.errors",
    "ConflictError": "raddle.model.errors",
    "FormatError": "raddle.model.errors",
    "StorageError": "raddle.model.errors",
}
"""Where each public name is at home."""

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604  each is a text


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'raddle' has no attribute {name!r}")
    import importlib  # noqa: PLC0415

    found: object = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
