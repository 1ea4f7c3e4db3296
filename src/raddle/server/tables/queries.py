"""Named queries: `-- name: x` starts one in a `.sql` file, and nothing of SQL is written anywhere else.

A query that is put together from pieces at run time could be put together from what a stranger sent.
"""

from __future__ import annotations

import functools
import re
from importlib import resources

_NAME = re.compile(rb"^-- name: ([a-z_]+)\n", re.MULTILINE)


@functools.cache
def queries(package: str, file: str) -> dict[str, bytes]:
    """The queries of `file` in a package, by name."""
    data = resources.files(package).joinpath(file).read_bytes()
    parts = _NAME.split(data)[1:]
    return {name.decode(): text for name, text in zip(parts[::2], parts[1::2], strict=True)}
