# The public names with their types; `__init__.py` loads each when it is first asked for.

from raddle.apps.library.phase_adapter import PhaseAdapter as PhaseAdapter
from raddle.apps.library.session import Session as Session
from raddle.apps.library.session import record as record
from raddle.apps.library.store import Store as Store
from raddle.apps.library.store import open as open  # noqa: A004
from raddle.apps.library.streamed_reply import StreamedReply as StreamedReply
from raddle.apps.library.tool_run import ToolRun as ToolRun
from raddle.model.errors import Ambiguous as Ambiguous
from raddle.model.errors import ConflictError as ConflictError
from raddle.model.errors import FormatError as FormatError
from raddle.model.errors import InvalidInput as InvalidInput
from raddle.model.errors import NotFound as NotFound
from raddle.model.errors import RaddleError as RaddleError
from raddle.model.errors import StorageError as StorageError
from raddle.model.errors import UserError as UserError
from raddle.model.memory.handoff import Evidence as Evidence
from raddle.model.memory.handoff import Handoff as Handoff
from raddle.model.threads.agent_state import AgentState as AgentState
from raddle.model.threads.message import Message as Message
from raddle.model.threads.message import ToolCall as ToolCall
from raddle.model.threads.message import Usage as Usage
from raddle.model.threads.summary import ThreadSummary as ThreadSummary
from raddle.model.threads.thread import Thread as Thread

__version__: str
__all__ = [
    "AgentState",
    "Ambiguous",
    "ConflictError",
    "Evidence",
    "FormatError",
    "Handoff",
    "InvalidInput",
    "Message",
    "NotFound",
    "PhaseAdapter",
    "RaddleError",
    "Session",
    "StorageError",
    "Store",
    "StreamedReply",
    "Thread",
    "ThreadSummary",
    "ToolCall",
    "ToolRun",
    "Usage",
    "UserError",
    "__version__",
    "open",
    "record",
]
