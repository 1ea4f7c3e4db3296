"""What raddle asks of OpenCode's own program: `debug config`, `models`, and `import FILE` into the database.

`python -m tests.fakes.opencode_program WORDS…`; the real one passes the same tests (`system/test_going_on.py`).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.builders_opencode_stores import connected, text

CONFIG = {"model": "mock/m"}


def install(folder: Path) -> None:
    """Put it into a folder under the program's name."""
    folder.mkdir(parents=True, exist_ok=True)
    root = Path(__file__).resolve().parent.parent.parent
    script = folder / "opencode"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="{root}" exec "{sys.executable}" -m tests.fakes.opencode_program "$@"\n'
    )
    script.chmod(0o755)


def main(*words: str) -> int:
    """Run a command."""
    if words == ("debug", "config"):
        sys.stdout.write(json.dumps(CONFIG))
        return 0
    if words == ("models",):
        sys.stdout.write("opencode/free\nmock/m\n")
        return 0
    if words[:1] == ("import",) and len(words) == 2:
        return _bring_in(json.loads(Path(words[1]).read_text()))
    sys.stderr.write("unknown command\n")
    return 1


def _bring_in(document: dict[str, Any]) -> int:
    info = document["info"]
    home = Path(os.environ.get("XDG_DATA_HOME") or Path(os.environ["HOME"]) / ".local/share") / "opencode"
    home.mkdir(parents=True, exist_ok=True)
    connection = connected(home / "opencode.db")
    named = [
        message["info"]["model"] for message in document["messages"] if message["info"]["role"] == "user"
    ]
    assert named[-1] == {"providerID": "mock", "modelID": "m"}, f"no such model: {named[-1]}"
    times = info["time"]["created"], info["time"]["updated"]
    connection.execute("BEGIN")
    connection.execute(
        "INSERT INTO session VALUES (?, ?, NULL, 'slug', ?, ?, ?, NULL, NULL, NULL, NULL, ?, ?, ?, ?, NULL)",
        (
            info["id"],
            info["projectID"],
            os.getcwd(),  # noqa: PTH109
            info["title"],
            info["version"],
            "build",
            text({"id": "m", "providerID": "mock"}),
            *times,
        ),
    )
    for message in document["messages"]:
        row = dict(message["info"])
        name, session = row.pop("id"), row.pop("sessionID")
        created = row["time"]["created"]
        connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)", (name, session, created, created, text(row))
        )
        for part in message["parts"]:
            data = {key: value for key, value in part.items() if key not in ("id", "sessionID", "messageID")}
            connection.execute(
                "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
                (part["id"], name, session, created, created, text(data)),
            )
    connection.execute("COMMIT")
    connection.close()
    sys.stdout.write(f"Imported session: {info['id']}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
