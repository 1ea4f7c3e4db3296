"""No tracked text tells of the machine it was written on."""

from __future__ import annotations

import re

import pytest

from tests.architecture.sources import text_files

# Spelled in pieces, or these lines would be the first to break the rule.
MACHINE_PATHS = re.compile(r"/work/[a-z.]|/[r]oot/")
REGISTRY_HOSTS = re.compile(
    r"pypi[.]org|pythonhosted[.]org|npmjs[.](?:org|com)|(?:deb|security)[.]debian[.]org"
)


@pytest.mark.parametrize(
    "pattern", [MACHINE_PATHS, REGISTRY_HOSTS], ids=["paths of a machine", "registry hosts"]
)
def test_no_tracked_text_names(pattern: re.Pattern[str]) -> None:
    found = [
        f"{path}:{number}: {line.strip()[:80]}"
        for path, text in text_files().items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_constraints_name_versions_and_nothing_else() -> None:
    lines = [line.strip() for line in text_files()["constraints.txt"].splitlines()]
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.!+]+", pin)] == []
