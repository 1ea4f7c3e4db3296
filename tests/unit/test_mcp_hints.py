"""An agent is told what it can do itself by the names of its tools."""

from __future__ import annotations

from raddle.apps.mcp_server.catalogue import TOOLS
from raddle.apps.mcp_server.hints import TOOL_OF, for_agents


def test_a_command_is_named_by_its_tool_and_what_only_a_person_can_do_stays() -> None:
    assert for_agents("`raddle memory list team` shows what there is") == "memory_list shows what there is"
    assert for_agents("`raddle list`, or `raddle run list`") == "thread_list, or run_list"
    for only_a_person in (
        "`raddle store sync --publish`",
        "`raddle memory resolve x`",
        "see `raddle doctor`",
    ):
        assert for_agents(only_a_person) == only_a_person


def test_every_tool_that_a_hint_can_name_is_there() -> None:
    assert set(TOOL_OF.values()) <= {tool.name for tool in TOOLS}
