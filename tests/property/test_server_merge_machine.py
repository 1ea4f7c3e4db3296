"""The state machine of the merge with the real server in it: what holds of the hub in memory holds of PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import initialize, run_state_machine_as_test
from psycopg import Connection

from tests.builders import THREAD_ID
from tests.builders_server import connected, prepare
from tests.postgres import NewDatabase
from tests.property.merge_machine import THEMES, MergeMachine
from tests.property.server_hub import HubOnPostgreSQL

pytest_plugins = ("tests.postgres",)


@pytest.fixture
def connection(new_database: NewDatabase) -> Iterator[Connection]:
    with contextlib.closing(connected(new_database(prepare))) as found:
        yield found


HUB_ACCIDENTS = ("hub_backup", "hub_restore", "hub_replica_falls_behind", "stale_answer")


def on_the_server(connection: Connection) -> type[MergeMachine]:
    """The machine, whose first hub is the server: the one that serves all three devices."""

    class OnServer(MergeMachine):
        server: ClassVar[Connection] = connection

        def __init__(self) -> None:
            super().__init__()
            self.hubs[0] = HubOnPostgreSQL("hub1", self.world, THREAD_ID, self.server)

    return OnServer


def with_its_accidents(connection: Connection) -> type[MergeMachine]:
    """The same where what befalls it befalls the hubs: they are put back to backups, and late answers come."""

    class OnServer(on_the_server(connection)):  # type: ignore[misc]  # a class made for this connection
        @initialize(stories=THEMES)
        def begin(self, stories: list[str]) -> None:
            self.stories, self.accidents = stories, list(HUB_ACCIDENTS)

    return OnServer


def test_three_devices_agree_over_the_server_and_lose_nothing(connection: Connection) -> None:
    run_state_machine_as_test(
        on_the_server(connection), settings=settings(max_examples=25, stateful_step_count=25)
    )


def test_a_server_that_is_put_back_to_a_backup_gets_everything_again(connection: Connection) -> None:
    run_state_machine_as_test(
        with_its_accidents(connection), settings=settings(max_examples=25, stateful_step_count=25)
    )


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("machine", [on_the_server, with_its_accidents])
def test_three_devices_agree_over_the_server_through_long_lives(
    connection: Connection, machine: Callable[[Connection], type[MergeMachine]], part: int
) -> None:
    run_state_machine_as_test(
        machine(connection), settings=settings(max_examples=500, stateful_step_count=60)
    )
