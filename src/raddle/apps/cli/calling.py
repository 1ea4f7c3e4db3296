"""How raddle is called from where the person stands: what is printed to be typed has to work when it is typed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from raddle.apps.cli import words

_NAME = "raddle"


class Calling(NamedTuple):
    """`command`: what to type before the verb. `advice`: how to make it just `raddle`; empty where it is."""

    command: str
    advice: str = ""


def how_to_call() -> Calling:
    """How to call this very program in this shell, in this folder."""
    try:
        here = Path.cwd()
    except OSError:  # it is gone
        here = Path("/")
    # `python -m raddle` is started as a file of the package, beside which no command lies.
    places = [Path(sys.argv[0]).parent, Path(sys.executable).parent]
    ours = next((place / _NAME for place in places if (place / _NAME).is_file()), None)
    if ours is None:
        return Calling(f"{_typed(Path(sys.executable))} -m {_NAME}")
    return called(ours.absolute(), os.get_exec_path(), here)


def called(ours: Path, folders: Sequence[str], here: Path) -> Calling:
    """How to call `ours` where the shell looks in these folders and stands in `here`; all absolute."""
    found = shutil.which(_NAME, path=os.pathsep.join(folders))
    if found is not None and Path(found).samefile(ours):
        return Calling(_NAME)
    shown = shlex.quote(str(ours.relative_to(here))) if ours.is_relative_to(here) else _typed(ours)
    if shown == _NAME:
        shown = f"./{_NAME}"
    return Calling(shown, f"to call it {_NAME} from everywhere: {_onto_path(ours, folders)}")


def _typed(path: Path) -> str:
    """The path as one types it: below the home folder with a tilde, unless it has to stand in quotes."""
    quoted = shlex.quote(str(path))
    return words.short_path(quoted) if quoted == str(path) else quoted


def _onto_path(ours: Path, folders: Sequence[str]) -> str:
    own = Path.home() / ".local/bin"
    if str(own) in folders and own.is_dir() and not (own / _NAME).exists():
        return f"ln -s {shlex.quote(str(ours))} ~/.local/bin/"
    return f"export PATH={shlex.quote(str(ours.parent))}:$PATH"
