"""What the application gives a handler by the name of a parameter, each typed once; `app.py` provides it by that name.

`hub: GivenHub`, `caller: GivenCaller` (who asks, or NotSignedIn), `visitor: GivenVisitor` (who asks, or None),
`database: GivenDatabase`, `web: GivenWeb`, `new_id: GivenIds`, `counts: GivenCounts`; the framework gives `request`.
"""

from __future__ import annotations

from typing import Any

from litestar import Request
from litestar.di import NamedDependency

from raddle.model.ids import NewId
from raddle.server.accounts.callers import Caller
from raddle.server.http.web import WebSettings
from raddle.server.hub import Hub
from raddle.server.metrics import Metrics
from raddle.server.tables.database import Database

AnyRequest = Request[Any, Any, Any]
GivenHub = NamedDependency[Hub]
GivenCaller = NamedDependency[Caller]
GivenVisitor = NamedDependency[Caller | None]
GivenDatabase = NamedDependency[Database]
GivenWeb = NamedDependency[WebSettings]
GivenIds = NamedDependency[NewId]
GivenCounts = NamedDependency[Metrics]
