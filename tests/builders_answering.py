"""Programs that answer, and the settings by which raddle finds them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from raddle.config import load_config

ECHO = "import sys; said = sys.stdin.read(); print('heard:', said.splitlines()[-1] if said.strip() else '-', end='')"
SLOW = """
import os, sys, time
parent = os.getppid()
sys.stdin.read()
for word in ("one ", "two ", "three "):
    print(word, end="", flush=True)
while os.getppid() == parent:
    time.sleep(0.5)
"""
"""Never ends by itself, save where who started it was killed."""
JSON = "import json, sys; asked = json.load(sys.stdin); print(json.dumps(asked), end='')"


def set_up(**programs: str) -> Path:
    """Write config.toml with a `command` responder for each: its name and its Python. The file."""
    lines = []
    for name, code in programs.items():
        lines += [
            f"[responders.{name}]",
            'kind = "command"',
            f"program = {json.dumps([sys.executable, '-c', code])}",
        ]
        if code is JSON:
            lines.append('format = "json"')
    return write_settings("\n".join(lines))


def write_settings(text: str) -> Path:
    """Put `text` into config.toml; the file."""
    file = load_config().config_dir / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file
