"""The protocol: the one module that knows the official SDK. Tools, resources and prompts as it wants them.

Each call runs in a thread of its own, so that one that waits for a network or a lock keeps nobody else waiting.
"""

from __future__ import annotations

import functools
import logging
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
import msgspec
from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from pydantic import ValidationError

from raddle import __version__
from raddle.apps.mcp_server.catalogue import INSTRUCTIONS, TOOLS
from raddle.apps.mcp_server.hints import for_agents
from raddle.apps.mcp_server.prompts import PROMPTS, Prompt, prompt
from raddle.apps.mcp_server.resources import RESOURCES, TEMPLATES, read_resource
from raddle.apps.mcp_server.schemas import answer_schema, schema_of
from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.tools import Call, Tool, arguments_of
from raddle.model.errors import RaddleError

_LOG = logging.getLogger(__name__)
_AT_ONCE = 40
_ROOTS_SECONDS = 5.0
_LONGEST = 1000
"""Characters of what is said to be wrong: it may quote an argument."""

Context = ServerRequestContext[Any, Any]
SessionOf = Callable[[Context], Session]
T = TypeVar("T")


def build_server(
    session_of: SessionOf, tools: tuple[Tool, ...] = TOOLS, *, instructions: str = INSTRUCTIONS
) -> Server[Any]:
    """A server of these tools. `session_of`: whose call it is; one session for each connection, or each account.

    Resources and prompts are there where the tools that they read with are.
    """
    handlers = _Handlers(session_of, tools)
    rest: dict[str, Any] = {}
    if tools is TOOLS:
        rest = {
            "on_list_resources": handlers.list_resources,
            "on_list_resource_templates": handlers.list_templates,
            "on_read_resource": handlers.read_resource,
            "on_list_prompts": handlers.list_prompts,
            "on_get_prompt": handlers.get_prompt,
        }
    server: Server[Any] = Server(
        "raddle",
        version=__version__,
        title="raddle",
        instructions=instructions,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        get_tool_input_schema=handlers.schema,
        **rest,
    )
    server.middleware.append(_say_what_is_wrong)
    return server


async def _say_what_is_wrong(ctx: Context, call_next: CallNext) -> Any:
    """The SDK says of parameters of the wrong form that they are invalid, and no more."""
    try:
        return await call_next(ctx)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "params"
        what = f"{ctx.method}: {where}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise MCPError(types.INVALID_PARAMS, what) from error


class _Handlers:
    """What answers each kind of request."""

    def __init__(self, session_of: SessionOf, tools: tuple[Tool, ...]) -> None:
        self._session_of = session_of
        self._tools = {tool.name: tool for tool in tools}
        self._listed = [_listed(tool) for tool in tools]
        self._limiter: anyio.CapacityLimiter | None = None

    def schema(self, name: str) -> dict[str, Any] | None:
        tool = self._tools.get(name)
        return None if tool is None else schema_of(tool.arguments)

    async def _aside(self, ctx: Context, work: Callable[[Session, Call], T]) -> T:
        """What `work` gives, from a thread of its own; abandoned once nobody waits for it."""
        session = self._session_of(ctx)
        await _meet_client(session, ctx)
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(_AT_ONCE)
        over = threading.Event()
        call = Call(progress=_progress(ctx), is_over=over.is_set)
        try:
            return await anyio.to_thread.run_sync(
                functools.partial(work, session, call), limiter=self._limiter, abandon_on_cancel=True
            )
        finally:
            over.set()

    async def list_tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._listed)

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {params.name[:60]!r}: tools/list names them"
            )
        given = params.arguments
        return await self._aside(ctx, lambda session, call: _called(tool, session, given, call))

    async def list_resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[types.Resource(**one) for one in RESOURCES])

    async def list_templates(self, ctx: Context, params: Any) -> types.ListResourceTemplatesResult:
        templates = [types.ResourceTemplate(**one) for one in TEMPLATES]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            mime, text = await self._aside(ctx, lambda session, call: read_resource(session, uri, call))
        except Exception as error:
            raise _refused(error, uri=uri) from error
        content = types.TextResourceContents(uri=uri, mime_type=mime, text=text)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[_listed_prompt(one) for one in PROMPTS])

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        given = dict(params.arguments or {})
        try:
            told = await self._aside(ctx, lambda session, call: prompt(session, params.name, given, call))
        except Exception as error:
            raise _refused(error) from error
        message = types.PromptMessage(role="user", content=types.TextContent(text=told.text))
        return types.GetPromptResult(description=told.summary, messages=[message])


def _listed_prompt(one: Prompt) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=name, description=told, required=name in one.required)
        for name, told in one.arguments.items()
    ]
    return types.Prompt(name=one.name, description=one.summary, arguments=arguments)


def _listed(tool: Tool) -> types.Tool:
    hints = tool.hints
    return types.Tool(
        name=tool.name,
        description=tool.summary,
        input_schema=schema_of(tool.arguments),
        output_schema=answer_schema(tool),
        annotations=types.ToolAnnotations(
            read_only_hint=hints.read_only,
            destructive_hint=None if hints.read_only else hints.destructive,
            idempotent_hint=None if hints.read_only else hints.idempotent,
            open_world_hint=hints.open_world,
        ),
    )


def _called(tool: Tool, session: Session, given: dict[str, Any] | None, call: Call) -> types.CallToolResult:
    """The result as the protocol has it: an error of ours is the tool's, which the agent reads and mends."""
    try:
        told = tool.run(session, arguments_of(tool, given), call)
        plain = msgspec.to_builtins(told, str_keys=True, enc_hook=str)
        text = msgspec.json.encode(plain).decode()
    except RaddleError as error:
        return types.CallToolResult(is_error=True, content=[types.TextContent(text=_one_line(error, "\n"))])
    except Exception as error:  # noqa: BLE001  an agent gets an answer, and the server lives
        _LOG.warning(
            "%s failed: %s", tool.name, type(error).__name__, exc_info=_LOG.isEnabledFor(logging.DEBUG)
        )
        text = f"{tool.name} failed ({type(error).__name__}), which is a fault of raddle's\ntry another way"
        return types.CallToolResult(is_error=True, content=[types.TextContent(text=text)])
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=plain)


def _refused(error: Exception, **data: str) -> MCPError:
    """The protocol's error for what a resource or a prompt could not be had for."""
    if isinstance(error, RaddleError):
        return MCPError(types.INVALID_PARAMS, _one_line(error), data or None)
    _LOG.warning("failed: %s", type(error).__name__, exc_info=_LOG.isEnabledFor(logging.DEBUG))
    return MCPError(
        types.INTERNAL_ERROR, f"raddle failed ({type(error).__name__}), which is a fault of its own"
    )


def _one_line(error: RaddleError, between: str = ": ") -> str:
    """What is wrong, and what to do."""
    said = error.message if len(error.message) <= _LONGEST else f"{error.message[:_LONGEST]} …"
    return f"{said}{between}{for_agents(error.hint)[:_LONGEST]}" if error.hint else said


def _progress(ctx: Context) -> Callable[[float, float | None, str], None]:
    """Tells the client from a call's thread; the SDK says nothing where it did not ask."""

    def tell(done: float, of: float | None, what: str) -> None:
        anyio.from_thread.run(ctx.session.report_progress, done, of, what)

    return tell


async def _meet_client(session: Session, ctx: Context) -> None:
    """Learn once who the client is and where it works, as far as it says so."""
    if session.has_met:
        return
    session.has_met = True
    params = ctx.session.client_params
    if params is None:
        return
    session.agent = session.agent or params.client_info.name[:60]
    if params.capabilities.roots is None or not ctx.session.can_send_request:
        return
    with anyio.move_on_after(_ROOTS_SECONDS):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                asked = ctx.session.list_roots()
            answer = await asked
        except Exception as error:  # noqa: BLE001  a client that cannot say so works without
            _LOG.info("roots were not told: %s", type(error).__name__)
            return
        session.roots = tuple(
            path for root in answer.roots if (path := _folder_of(str(root.uri))) is not None
        )


def _folder_of(uri: str) -> Path | None:
    """The folder of this machine that a root names; None where it is none."""
    parts = urlsplit(uri)
    path = Path(unquote(parts.path))
    is_here = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return path if is_here and path.is_absolute() and path.is_dir() else None
