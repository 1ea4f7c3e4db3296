"""`raddle artifact` and `raddle store gc`, as a person and a script run them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from raddle.adapters.memory_repo.versions import contents_of
from raddle.model.errors import RaddleError
from raddle.model.memory.project import Project, encode_project
from tests import s3_servers
from tests.command_line import Answer, done, raddle
from tests.memory_artifacts import CRLF, LARGE, a_run
from tests.memory_clones import Clone

NAME = hashlib.sha256(LARGE).hexdigest()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """A memory with a run, which the commands find by RADDLE_STORE; large.bin and report.md beside it."""
    clone = Clone(tmp_path / "store", None)
    clone.begin("build", "test")
    a_run(clone)
    monkeypatch.setenv("RADDLE_STORE", str(clone.root))
    (tmp_path / "large.bin").write_bytes(LARGE)
    (tmp_path / "report.md").write_bytes(CRLF)
    monkeypatch.chdir(tmp_path)
    return clone


def says(store: Clone, **blobs: str) -> None:
    project = Project(project_id="loom", phases=("build", "test"), blobs=blobs)
    store.files.change("project.yaml", lambda _: encode_project(project))


def test_a_file_is_kept_listed_and_fetched(store: Clone, tmp_path: Path) -> None:
    assert done("artifact", "add", "report.md", "--kind", "report").out == "report\n"
    assert done("artifact", "add", "large.bin", "--id", "model", "--phase", "test").out == "model\n"
    rows = done("artifact", "list", "--json").json
    assert [
        (row["artifact_id"], row["kind"], row["phase"], row["store"], row["is_here"]) for row in rows
    ] == [
        ("report", "report", "build", None, True),
        ("model", "file", "test", "local", True),
    ]
    assert (rows[1]["sha256"], rows[1]["size_bytes"]) == (NAME, len(LARGE))
    lines = done("artifact", "list").lines
    assert [line.split()[0] for line in lines] == ["report", "model"]
    assert ("in the memory" in lines[0], "here" in lines[1], "3.1 MB" in lines[1]) == (True, True, True)
    assert done("artifact", "get", "report").data == CRLF
    assert done("artifact", "get", "model").data == LARGE
    assert done("artifact", "get", "model", "-o", "copy").out == f"{tmp_path}/copy\n"
    assert (tmp_path / "copy").read_bytes() == LARGE


def test_a_file_that_is_there_is_only_replaced_where_somebody_says_so(store: Clone, tmp_path: Path) -> None:
    done("artifact", "add", "large.bin")
    done("artifact", "add", "report.md")
    for artifact_id, data in (("large", LARGE), ("report", CRLF)):
        for arguments in ((), ("--range", "0-1")):
            (tmp_path / "copy").write_bytes(b"mine")
            wanted = ("artifact", "get", artifact_id, "-o", "copy", *arguments)
            refused = raddle(*wanted, "--json")
            assert (refused.code, "--force" in refused.error["hint"]) == (4, True)
            assert (tmp_path / "copy").read_bytes() == b"mine"
            done(*wanted, "--force")
            assert (tmp_path / "copy").read_bytes() == (data[:2] if arguments else data)
        done("artifact", "get", artifact_id, "-o", "copy", "--force")
        assert done("artifact", "get", artifact_id, "-o", "copy").out  # the very bytes: nothing to replace


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("0-99", slice(0, 100)),
        ("3145700-", slice(3145700, None)),
        ("-7", slice(-7, None)),
        ("5-5", slice(5, 6)),
    ],
)
def test_a_range_of_an_artifact_is_fetched(store: Clone, tmp_path: Path, text: str, part: slice) -> None:
    done("artifact", "add", "large.bin")
    assert done("artifact", "get", "large", "--range", text).data == LARGE[part]
    done("artifact", "get", "large", "--range", text, "-o", "part")
    assert (tmp_path / "part").read_bytes() == LARGE[part]


@pytest.mark.parametrize(
    "text", ["", "-", "x", "9-3", "1,2", "3145728-", "99999999-99999999", "0-0x", "-0", "²-3"]
)
def test_what_is_no_range_is_refused(store: Clone, text: str) -> None:
    done("artifact", "add", "large.bin")
    assert raddle("artifact", "get", "large", "--range", text).code == 2


def test_a_broken_download_is_gone_on_with(store: Clone, tmp_path: Path) -> None:
    done("artifact", "add", "large.bin")
    (tmp_path / f".copy.{NAME[:12]}.part").write_bytes(LARGE[: 1 << 20])
    answer = done("artifact", "get", "large", "-o", "copy", "--json")
    assert (answer.json["had_bytes"], (tmp_path / "copy").read_bytes() == LARGE) == (1 << 20, True)
    assert "from a try that broke off" in answer.err


def test_stdin_becomes_an_artifact(store: Clone) -> None:
    assert raddle("artifact", "add", "-", stdin=b"typed").code == 2
    added = done("artifact", "add", "-", "--id", "note.txt", "--json", stdin=b"typed\r\n").json
    assert (added["is_new"], added["uri"].endswith("/phases/build/artifacts/note.txt")) == (True, True)
    assert done("artifact", "get", "note.txt").data == b"typed\r\n"


def test_the_same_again_is_a_note_and_other_bytes_are_a_conflict(store: Clone, tmp_path: Path) -> None:
    done("artifact", "add", "report.md")
    again = done("artifact", "add", "report.md", "--json")
    assert (again.json["is_new"], "there already" in again.err) == (False, True)
    (tmp_path / "report.md").write_bytes(b"other")
    refused = raddle("artifact", "add", "report.md", "--json")
    assert (refused.code, refused.error["code"]) == (4, "conflict")
    assert done("artifact", "get", "report").data == CRLF


def test_where_project_yaml_sends_bytes_is_agreed_to_once(store: Clone, tmp_path: Path) -> None:
    says(store, objects=str(tmp_path / "planted"))
    refused = raddle("artifact", "add", "large.bin", "--json")
    assert (refused.code, "--trust-blobs" in refused.error["hint"]) == (2, True)
    assert not (tmp_path / "planted").exists()
    assert done("artifact", "add", "report.md", "--json").json["store"] is None
    assert done("artifact", "add", "large.bin", "--trust-blobs", "--json").json["store"] == "objects"
    done("artifact", "add", "large.bin", "--id", "again")
    assert (tmp_path / "planted" / NAME[:2] / NAME).read_bytes() == LARGE


BAD: list[tuple[str, ...]] = [
    ("add", "no-such-file"),
    ("add", "."),
    ("add", "report.md", "--id", "../../x"),
    ("add", "report.md", "--id", ".git"),
    ("add", "report.md", "--id", ""),
    ("add", "report.md", "--kind", "../../x"),
    ("add", "report.md", "--kind", ""),
    ("add", "report.md", "--phase", "nope"),
    ("add", "report.md", "--phase", ".."),
    ("add", "report.md", "--run", "ZZZZ"),
    ("add", "report.md", "--run", "../x"),
    ("add", "large.bin", "--blobs", "nobody"),
    ("add", "large.bin", "--blobs", "../x"),
    ("add", "report.md", "--inline-below", "-1"),
    ("add", "report.md", "--inline-below", "999999999999"),
    ("get", "nope"),
    ("get", "../../etc/passwd"),
    ("get", ""),
    ("list", "--run", "nope"),
]


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_input_is_two_lines_and_changes_nothing(store: Clone, arguments: tuple[str, ...]) -> None:
    before = store.files.paths()
    answer = raddle("artifact", *arguments)
    assert answer.code in {2, 3}, answer
    assert (answer.data, "Traceback" in answer.err) == (b"", False)
    assert answer.err.startswith("error: ")
    assert store.files.paths() == before


@pytest.mark.parametrize("path", ["store/x", "store", "store/runs/x", "store/.git/x"])
def test_nothing_is_fetched_into_the_memory(store: Clone, path: str) -> None:
    done("artifact", "add", "large.bin")
    answer = raddle("artifact", "get", "large", "-o", path, "--json")
    assert (answer.code, "committed and pushed" in answer.error["message"]) == (2, True)


def test_a_damaged_artifact_ends_with_five(store: Clone, tmp_path: Path) -> None:
    done("artifact", "add", "large.bin")
    (blob,) = Path(os.environ["HOME"]).rglob(NAME)
    blob.write_bytes(LARGE[:-1] + b"\0")
    answer = raddle("artifact", "get", "large")
    assert (answer.code, len(answer.data) < len(LARGE)) == (5, True)
    assert raddle("artifact", "get", "large", "-o", "copy").code == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large.bin", "report.md", "store"]
    again = done("artifact", "add", "large.bin", "--json")
    assert (again.json["is_new"], again.json["is_mended"], "put back" in again.err) == (False, True, True)
    assert done("artifact", "get", "large").data == LARGE


def test_what_stood_in_place_of_a_damaged_text_stays_in_the_history(store: Clone) -> None:
    done("artifact", "add", "report.md")
    (row,) = done("artifact", "list", "--json").json
    store.sync()
    (store.root / row["uri"]).write_bytes(b"by hand")
    assert done("artifact", "add", "report.md", "--json").json["is_mended"]
    assert (store.root / row["uri"]).read_bytes() == CRLF
    assert b"by hand" in contents(store, row["uri"])


def test_what_is_gone_is_listed_as_missing(store: Clone, tmp_path: Path) -> None:
    done("artifact", "add", "large.bin")
    done("artifact", "add", "report.md")
    (blob,) = Path(os.environ["HOME"]).rglob(NAME)
    blob.unlink()
    (store.root / done("artifact", "list", "--json").json[1]["uri"]).unlink()
    assert [row["is_here"] for row in done("artifact", "list", "--json").json] == [False, False]
    assert raddle("artifact", "get", "large").code == 3
    says(store, local="s3://bucket/x")
    assert done("artifact", "list", "--json").json[0]["is_here"] is None


def contents(store: Clone, path: str) -> list[bytes]:
    """What it held in each commit."""
    return list(contents_of(store.root, path))


def _gc(*arguments: str, stdin: str = "") -> Answer:
    """`raddle store gc`, which the group of stores has, run by itself."""
    from raddle.apps.cli.commands.memory_machine import gc

    answer = CliRunner().invoke(gc, arguments, input=stdin, help_option_names=["-h", "--help"])
    code = 2 if isinstance(answer.exception, RaddleError) else answer.exit_code
    return Answer(code, answer.stdout_bytes, answer.stderr)


def test_gc_names_what_it_cannot_read_and_goes_on(store: Clone, tmp_path: Path) -> None:
    done("store", "init", "other", "--store", "other")
    (tmp_path / "other" / ".git" / "HEAD").unlink()
    added = done("artifact", "add", "large.bin", "--json").json
    store.files.change(f"runs/{_run(store)}/artifacts.index.json", lambda _: None)
    (blob,) = Path(os.environ["HOME"]).rglob(added["sha256"])
    os.utime(blob, (1, 1))
    answer = _gc("--yes", "--json")
    assert (answer.code, len(answer.json["blobs"])) == (0, 1)
    (kept,) = answer.json["kept_for_damaged"]
    assert (kept["store"], kept["blobs"]) == (str(tmp_path / "other"), 0)
    assert "cannot be read" in answer.err
    assert f"raddle store adopt {tmp_path / 'other'}" in answer.err


def test_the_memories_of_this_machine_are_listed(store: Clone, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        done("store", "init", name, "--store", name)
    done("artifact", "add", "large.bin")
    (tmp_path / "two").rename(tmp_path / "unplugged")
    (tmp_path / "three" / "project.yaml").write_bytes(b"\0")
    rows = {Path(row["store"]).name: row for row in done("store", "list", "--json").json}
    assert {name: (row["state"], row["project"]) for name, row in rows.items()} == {
        "one": ("whole", "one"),
        "store": ("whole", "loom"),
        "three": ("damaged", None),
        "two": ("away", None),
    }
    shown = done("store", "list")
    assert ["cannot be opened" in line for line in shown.lines] == [False, False, True, False]
    assert "not there now" in shown.lines[-1]
    assert "project.yaml" in shown.err


def test_gc_shows_asks_and_removes(store: Clone) -> None:
    added = done("artifact", "add", "large.bin", "--json").json
    assert _gc("--yes").out == "nothing is left over\n"
    store.files.change(f"runs/{_run(store)}/artifacts.index.json", lambda _: None)
    assert _gc("--dry-run").out == "nothing is left over\n"
    (blob,) = Path(os.environ["HOME"]).rglob(added["sha256"])
    os.utime(blob, (1, 1))
    assert _gc("--dry-run").out == "1 blob (3.1 MB) would go\n"
    assert _gc().code == 2
    assert blob.exists()
    assert _gc("--yes", "--json").json["bytes"] == len(LARGE)
    assert not blob.exists()


def _run(store: Clone) -> str:
    return next(path for path in store.files.paths("runs") if path.endswith("run.yaml")).split("/")[1]


MEASURED = """
import pathlib, re, sys
from raddle.apps.cli.main import main
code = main(sys.argv[1:])
status = pathlib.Path("/proc/self/status").read_text()
sys.stderr.write("peak %s\\n" % re.search(r"VmHWM:\\s*(\\d+)", status)[1])
sys.exit(code)
"""
"""The command, and after it the most memory that it had, in KiB: of a child the system tells its parent's too."""


@pytest.mark.soak
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not say how much memory it took"
)
def test_two_gigabytes_are_never_in_memory(store: Clone, tmp_path: Path) -> None:
    """Through a pipe, so that it is copied first; and out again."""
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2 << 30)
    for command in ("add /dev/stdin --id huge", "get huge -o copy", "get huge -o /dev/null"):
        with (tmp_path / "huge").open("rb") as stdin:
            feeding = subprocess.Popen(["cat"], stdin=stdin, stdout=subprocess.PIPE)
            asked = [sys.executable, "-c", MEASURED, "artifact", *command.split()]
            answer = subprocess.run(asked, stdin=feeding.stdout, capture_output=True, text=True, check=True)
            assert feeding.stdout is not None
            feeding.stdout.close()
            feeding.wait()
        assert int(answer.stderr.rpartition("peak ")[2]) < 120 << 10
    assert (tmp_path / "copy").stat().st_size == 2 << 30


@pytest.mark.soak
@pytest.mark.parametrize("server", ["moto", "rclone"])
def test_artifacts_go_into_a_bucket_and_come_back(
    store: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    running = s3_servers.moto() if server == "moto" else s3_servers.rclone(tmp_path / "served")
    with running as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_servers.KEY_ID)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_servers.SECRET)
        says(store, objects=f"s3://{s3_servers.BUCKET}/loom")
        assert done("artifact", "add", "large.bin", "--trust-blobs", "--json").json["store"] == "objects"
        assert done("artifact", "list", "--json").json[0]["is_here"] is None
        assert done("artifact", "list", "--check", "--json").json[0]["is_here"] is True
        (tmp_path / f".copy.{NAME[:12]}.part").write_bytes(LARGE[: 1 << 20])
        assert done("artifact", "get", "large", "-o", "copy", "--json").json["had_bytes"] == 1 << 20
        assert (tmp_path / "copy").read_bytes() == done("artifact", "get", "large").data == LARGE
        assert done("artifact", "get", "large", "--range", "-9").data == LARGE[-9:]
