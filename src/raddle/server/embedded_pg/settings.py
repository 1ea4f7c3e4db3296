"""What our PostgreSQL is set to: the texts of its settings files. Pure.

The one place that says it: a cluster's own `postgresql.conf` is not read, so that a newer raddle's settings
reach a cluster that an older one made.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

SUPERUSER = DATABASE = MAP = "raddle"
_MIB = 1 << 20
_SMALL_SHARED_MEMORY = 256 * _MIB


class Machine(Struct, frozen=True, kw_only=True):
    """What of this machine settings depend on, in bytes."""

    memory: int
    shared_memory: int | None
    """How much `/dev/shm` takes; None where there is none."""


def server_settings(machine: Machine, *, local_settings: str | None, is_durable: bool) -> str:
    """The whole settings file; the operator's own, at the path `local_settings`, is read last."""
    shared_buffers = max(32, min(256, machine.memory // 8 // _MIB))
    settings = {
        "max_connections": "120",
        "shared_buffers": f"{shared_buffers}MB",
        "maintenance_work_mem": "64MB",
        "wal_compression": "on",
        "min_wal_size": "80MB",
        "max_wal_size": "1GB",
        "checkpoint_timeout": "15min",
        "jit": "off",
        "password_encryption": "scram-sha-256",
        "timezone": "UTC",
        "log_timezone": "UTC",
        # Nothing of a statement or a row reaches the log: an error's text may quote either, so errors go to
        # the client alone (LOG ranks above ERROR there).
        "log_min_messages": "log",
        "log_min_error_statement": "panic",
        "log_statement": "none",
        "log_min_duration_statement": "-1",
        "log_error_verbosity": "terse",
        "log_checkpoints": "off",
        "log_autovacuum_min_duration": "-1",
        "log_line_prefix": "%m [%p] ",
        "log_destination": "stderr",
        "logging_collector": "off",
    }
    if machine.shared_memory is not None and machine.shared_memory < _SMALL_SHARED_MEMORY:
        # A container's 64 MB would end large queries, whose workers share their rows there.
        settings["dynamic_shared_memory_type"] = "mmap"
    if not is_durable:
        settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    lines = [
        "# Written by raddle at every start; what you set goes into ../local.conf, which is read last.\n"
    ]
    lines += [f"{name} = {quoted(value)}\n" for name, value in settings.items()]
    if local_settings is not None:
        lines.append(f"include {quoted(local_settings)}\n")
    return "".join(lines)


def access_rules() -> str:
    """Who may come in: over the socket, whom the system itself vouches for. Nobody over TCP."""
    return f"local all {SUPERUSER} peer map={MAP}\n"


def account_map(names: Iterable[str]) -> str:
    """Which accounts of the machine come in as the one user there is."""
    return "".join(f'{MAP} "{name}" {SUPERUSER}\n' for name in names)


def quoted(value: str) -> str:
    """A value as the settings file wants it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
