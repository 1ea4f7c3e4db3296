"""The words by which a device signs in (RFC 8628), and what it is told about itself and the others of its person.

Client and server speak these and no others; a scope or an error that one of them alone knew would shut a device out.
"""

from __future__ import annotations

from msgspec import Struct

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
"""The `grant_type` by which a device asks for its token."""

THREADS, THREADS_READ = "threads", "threads:read"
SCOPES = (THREADS, THREADS_READ)
"""What a token may be for: all that its person may do with threads; or to read alone."""

PENDING, SLOW_DOWN, DENIED, EXPIRED = "authorization_pending", "slow_down", "access_denied", "expired_token"
"""What a device that asks for its token is told, besides errors of its own."""


class DeviceAuthorization(Struct, frozen=True, kw_only=True):
    """Where a person goes to let a device in. `expires_in`, and `interval` between two questions: seconds."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class TokenAnswer(Struct, frozen=True, kw_only=True):
    """A token, said once and never again. `scope`: words with a space between them."""

    access_token: str
    scope: str
    device_id: str
    device_name: str
    token_type: str = "Bearer"  # noqa: S105  what RFC 6749 calls the kind of it


class TokenRefusal(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why there is no token (now): `error` is one of RFC 8628's and RFC 6749's. `interval`: seconds, from now on."""

    error: str
    error_description: str = ""
    interval: int = 0


class DeviceShown(Struct, frozen=True, kw_only=True):
    """A device that is let in. Times as RFC 3339; `is_current`: the one that asks."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created_at: str
    last_used_at: str | None
    is_current: bool = False


class Me(Struct, frozen=True, kw_only=True):
    """Who asks. `device_id` and `device_name` are null in a browser."""

    user_id: str
    name: str
    space: str
    """The id of their personal space."""
    spaces: tuple[str, ...]
    """Of all spaces they are members of, their own first."""
    device_id: str | None
    device_name: str | None
    scopes: tuple[str, ...]
    is_admin: bool
