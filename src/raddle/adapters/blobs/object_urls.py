"""Which URLs name a bucket that blobs can be kept in. One that would carry a credential is none of them.

Such a URL is shown in errors and by `raddle config show`. A second idea of it would print somebody's key.
"""

from __future__ import annotations

import re

from raddle.model.errors import InvalidInput

_OBJECT_URL = re.compile(r"(?:s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]*(?:/[^?#@\s\x00-\x1f\x7f]*)?\Z")


def parse_object_url(text: str, where: str = "the place of the blobs") -> str:
    """`text` itself, such as `s3://bucket/prefix`; InvalidInput, which does not repeat it, where it is none."""
    if _OBJECT_URL.match(text) is None:
        raise InvalidInput(
            f"{where} is no bucket and prefix",
            "write s3://bucket/prefix, gs://… or az://…; credentials go into variables such as AWS_ACCESS_KEY_ID",
        )
    return text
