"""Fixtures of a server of accounts and pages: a site over a database of the test's own, and ada signed in to it.

A test module that wants them names this one in its `pytest_plugins`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.builders_accounts import Site, a_site, a_user
from tests.builders_server import prepare
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)


@pytest.fixture
def conninfo(new_database: NewDatabase) -> str:
    return new_database(prepare)


@pytest.fixture
def site(conninfo: str) -> Iterator[Site]:
    with a_site(conninfo) as found:
        yield found


@pytest.fixture
def ada(site: Site) -> Site:
    """The site, with ada signed in."""
    a_user(site.connection)
    assert site.sign_in().status_code == 303
    return site
