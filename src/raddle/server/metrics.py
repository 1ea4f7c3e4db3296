"""Counts of one server process: requests by route, method and status, and how long they took.

Kept by route, never by path: a path holds ids.
"""

from __future__ import annotations

import threading

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_Key = tuple[str, str, int]


class Metrics:
    """Counts that several threads add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[_Key, int] = {}
        self._seconds: dict[str, float] = {}
        self._buckets: dict[str, list[int]] = {}
        self.listeners = 0
        """Open event streams."""

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request was answered."""
        with self._lock:
            key = (method, route, status)
            self._requests[key] = self._requests.get(key, 0) + 1
            self._seconds[route] = self._seconds.get(route, 0.0) + seconds
            counts = self._buckets.setdefault(route, [0] * (len(_BUCKETS) + 1))
            at = next((at for at, most in enumerate(_BUCKETS) if seconds <= most), len(_BUCKETS))
            counts[at] += 1

    def text(self) -> str:
        """All of it in Prometheus's text form."""
        with self._lock:
            lines = ["# TYPE raddle_requests_total counter"]
            lines += [
                f'raddle_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
                for (method, route, status), count in sorted(self._requests.items())
            ]
            lines.append("# TYPE raddle_request_seconds histogram")
            for route, counts in sorted(self._buckets.items()):
                total = 0
                for most, count in zip((*_BUCKETS, "+Inf"), counts, strict=True):
                    total += count
                    lines.append(f'raddle_request_seconds_bucket{{route="{route}",le="{most}"}} {total}')
                lines.append(f'raddle_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
                lines.append(f'raddle_request_seconds_count{{route="{route}"}} {total}')
            lines += ["# TYPE raddle_event_streams gauge", f"raddle_event_streams {self.listeners}"]
            return "\n".join(lines) + "\n"
