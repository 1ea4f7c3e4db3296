"""What commands print: test runs, logs, diffs, listings, compiler errors, `count` lines of each.

Owns how random such text is: numbers, shas and times are what a vocabulary grows by in the long run.
"""

from __future__ import annotations

import random

from bench.corpus.project import Project
from bench.corpus.words import EMOJI, hex_text

_LONGEST = 30_000
_LEVELS = ("INFO", "INFO", "DEBUG", "WARN", "ERROR")


def clip(text: str) -> str:
    """`text`, without its middle where it is longer than the tool shows."""
    return text if len(text) <= _LONGEST else f"{text[:15_000]}\n\n... [truncated] ...\n\n{text[-14_900:]}"


def stamp(rng: random.Random) -> str:
    """Some minute of 2025."""
    month, day, hour, minute = (
        rng.randrange(1, 13),
        rng.randrange(1, 29),
        rng.randrange(24),
        rng.randrange(60),
    )
    return f"2025-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}Z"


def test_run(rng: random.Random, project: Project, count: int) -> str:
    """Tests that passed, packages, failures with what was expected."""
    names = project.names.draw(rng, count * 2)
    out = []
    for at, path in enumerate(project.paths(rng, count)):
        name, other = names[2 * at], names[2 * at + 1]
        draw = rng.random()
        if draw < 0.45:
            out.append(f"--- PASS: Test{name[:1].upper()}{name[1:]} ({rng.random() / 8:.2f}s)")
        elif draw < 0.7:
            out.append(f"ok  \t{project.name}/{path.rsplit('/', 1)[0]}\t{rng.random() * 4:.3f}s")
        elif draw < 0.9:
            out.append(f"    {path}:{rng.randrange(1, 900)}: {name}: expected {other}, got {names[at]}")
        else:
            out.append(f"{rng.choice(EMOJI)} {name} › {other} ({rng.randrange(1, 900)} ms)")
    return "\n".join(out)


def git_log(rng: random.Random, project: Project, count: int) -> str:
    """Short shas and subjects."""
    names, words = project.names.draw(rng, count), project.words.draw(rng, count * 6)
    subjects = [" ".join(words[6 * at : 6 * at + 6]) for at in range(count)]
    return "\n".join(
        [f"{hex_text(rng, 7)} {name}: {subject}" for name, subject in zip(names, subjects, strict=True)]
    )


def git_diff(rng: random.Random, project: Project, count: int) -> str:
    """A hunk of one file."""
    file = project.a_file(rng)
    at = rng.randrange(max(len(file.lines) - count, 1))
    kept = file.lines[at : at + count]
    fresh = project.code(rng, file.language, count // 3 + 1)
    lines = [
        f"diff --git a/{file.path} b/{file.path}",
        f"index {hex_text(rng, 7)}..{hex_text(rng, 7)} 100644",
    ]
    lines.append(f"@@ -{at + 1},{len(kept)} +{at + 1},{len(kept)} @@")
    lines += [f"-{line}" if rng.random() < 0.2 else f" {line}" for line in kept]
    return "\n".join(lines + [f"+{line}" for line in fresh])


def listing(rng: random.Random, project: Project, count: int) -> str:
    """Files with their sizes and days."""
    out = []
    for path in project.paths(rng, count):
        size, day, minute = int(rng.lognormvariate(7.5, 0.8)), rng.randrange(1, 29), rng.randrange(60)
        out.append(f"-rw-r--r--  1 dev dev {size:>7} Jan {day:>2} 10:{minute:02d} {path}")
    return "\n".join(out)


def server_log(rng: random.Random, project: Project, count: int) -> str:
    """Times, levels, a component, a few words, how long it took."""
    names, words = project.names.draw(rng, count), project.words.draw(rng, count * 5)
    out = []
    for at, name in enumerate(names):
        said = " ".join(words[5 * at : 5 * at + 5])
        out.append(f"{stamp(rng)} {rng.choice(_LEVELS)} [{name}] {said} took={rng.randrange(1, 500)}ms")
    return "\n".join(out)


def build_errors(rng: random.Random, project: Project, count: int) -> str:
    """Places in files and names that are not found there."""
    names = project.names.draw(rng, count * 2)
    out = []
    for at, path in enumerate(project.paths(rng, count)):
        place = f"{path}:{rng.randrange(1, 600)}:{rng.randrange(1, 80)}"
        out.append(f"{place}: error: cannot find `{names[2 * at]}` in `{names[2 * at + 1]}`")
    return "\n".join(out)
