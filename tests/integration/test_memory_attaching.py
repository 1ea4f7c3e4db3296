"""A memory that is attached on another machine: by its marker, by an address, and never as an empty twin."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from raddle.adapters.memory_repo.making import clone_repository
from raddle.model.errors import (
    BrokenFormat,
    ConflictError,
    InvalidInput,
    NetworkError,
    NewerFormat,
    NotFound,
    RaddleError,
)
from raddle.model.memory.marker import decode_marker
from raddle.model.memory.repo_layout import MARKER_FILE, PEER_MARKER_FILE, PROJECT_FILE
from raddle.wiring.memory import open_memory
from raddle.wiring.memory_making import (
    StoreMade,
    attach_branch,
    attach_store,
    clone_store,
    init_store,
    init_worktree,
)
from raddle.wiring.memory_places import known_stores
from tests.memory_clones import git
from tests.memory_hosts import (
    AUTHOR,
    BRANCH,
    branches,
    commit,
    make_code,
    stores_in,
    untouchable,
    work_in_progress,
)


def attach(host: Path, **options: object) -> StoreMade:
    """Attach what the marker of `host` names."""
    with stores_in(host) as stores:
        return attach_store(stores, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: code with a memory on a branch of its own, a memory by itself, and their bare repositories."""
    place = tmp_path_factory.mktemp("made")
    code = make_code(place / "first", hub=place / "hub.git")
    with stores_in(code, data_dir=str(place / "data"), state_dir=str(place / "state")) as stores:
        on_branch = init_worktree(stores, "loom", worktree_repo=str(code)).root
        alone = init_store(stores, "loom", store=str(place / "origin")).root
    for root in (on_branch, alone):
        commit(root, "memory/note", "remember\n")
    commit(code, MARKER_FILE, (code / MARKER_FILE).read_text())
    git("push", "--quiet", "origin", "main", BRANCH, cwd=code)
    git("clone", "--quiet", "--bare", str(alone), str(place / "memory.git"), cwd=place)
    return place


@pytest.fixture
def hub(made: Path, tmp_path: Path) -> Path:
    """A bare repository of code whose `main` has a marker, and a memory on a branch of its own."""
    return Path(shutil.copytree(made / "hub.git", tmp_path / "hub.git"))


@pytest.fixture
def memory_hub(made: Path, tmp_path: Path) -> Path:
    """A bare repository that holds a memory, and nothing else; `origin` beside it is the clone that was pushed."""
    shutil.copytree(made / "origin", tmp_path / "origin")
    return Path(shutil.copytree(made / "memory.git", tmp_path / "memory.git"))


@pytest.fixture
def code(hub: Path, tmp_path: Path) -> Path:
    """A clone of the code, its memory attached."""
    git("clone", "--quiet", str(hub), str(tmp_path / "first"), cwd=tmp_path)
    attach(tmp_path / "first")
    return tmp_path / "first"


def with_marker(host: Path, text: str, name: str = MARKER_FILE) -> Path:
    """A folder of code whose marker says `text` of its store."""
    host.mkdir(parents=True, exist_ok=True)
    (host / name).write_text(f"schema_version: 1\nstore: {text}\n")
    return host


class TestABranchOfTheCode:
    @pytest.mark.parametrize(
        "how",
        [(), ("--depth=1",), ("--single-branch",), ("--filter=blob:none",), ("--no-tags", "--depth=1")],
        ids=str,
    )
    def test_any_clone_of_the_code_gets_the_memory_that_is_there(
        self, tmp_path: Path, hub: Path, how: tuple[str, ...]
    ) -> None:
        git("config", "uploadpack.allowFilter", "true", cwd=hub)
        git("clone", "--quiet", *how, f"file://{hub}", str(tmp_path / "second"), cwd=tmp_path)
        work_in_progress(tmp_path / "second")
        before = untouchable(tmp_path / "second")
        made = attach(tmp_path / "second")
        assert (made.done, made.root) == ("attached", tmp_path / "second" / BRANCH)
        assert (made.root / "memory" / "note").read_text() == "remember\n"
        assert git("rev-parse", "HEAD", cwd=made.root) == git("rev-parse", BRANCH, cwd=hub)
        assert git("status", "--porcelain", cwd=made.root) == ""
        assert untouchable(tmp_path / "second") == before

    def test_again_says_that_it_is_there(self, tmp_path: Path, hub: Path) -> None:
        git("clone", "--quiet", str(hub), str(tmp_path / "second"), cwd=tmp_path)
        attach(tmp_path / "second")
        assert attach(tmp_path / "second").done == "there"

    def test_of_two_that_come_at_once_one_makes_it_and_one_finds_it(self, tmp_path: Path, hub: Path) -> None:
        git("clone", "--quiet", str(hub), str(tmp_path / "second"), cwd=tmp_path)
        with ThreadPoolExecutor(2) as threads:
            outcomes = list(threads.map(attach, [tmp_path / "second"] * 2))
        assert sorted(one.done for one in outcomes) == ["attached", "there"]

    def test_a_branch_that_is_nowhere_is_not_begun_anew(self, tmp_path: Path, hub: Path) -> None:
        git("update-ref", "-d", f"refs/heads/{BRANCH}", cwd=hub)
        git("clone", "--quiet", str(hub), str(tmp_path / "second"), cwd=tmp_path)
        with pytest.raises(NotFound) as refused:
            attach(tmp_path / "second")
        assert "raddle store init" in refused.value.hint
        assert branches(tmp_path / "second") == ["main"]
        assert not (tmp_path / "second" / BRANCH).exists()

    def test_a_remote_that_is_away_is_a_failure(self, tmp_path: Path, hub: Path) -> None:
        git("clone", "--quiet", "--single-branch", str(hub), str(tmp_path / "second"), cwd=tmp_path)
        hub.rename(tmp_path / "away.git")
        with pytest.raises(NetworkError):
            attach(tmp_path / "second")
        assert branches(tmp_path / "second") == ["main"]

    def test_every_working_tree_of_the_code_uses_one_checkout(self, tmp_path: Path, code: Path) -> None:
        git("worktree", "add", "--quiet", "-b", "feature", str(tmp_path / "second"), cwd=code)
        made = attach(tmp_path / "second")
        assert (made.done, made.root) == ("there", code / BRANCH)
        with stores_in(tmp_path / "second") as stores:
            assert open_memory(stores).root == code / BRANCH

    def test_the_branch_checked_out_by_the_person_is_left_to_them(self, tmp_path: Path, hub: Path) -> None:
        git("clone", "--quiet", str(hub), str(tmp_path / "second"), cwd=tmp_path)
        second = tmp_path / "second"
        with_marker(tmp_path / "second" / "inner", f"{{mode: worktree, path: ./m, branch: {BRANCH}}}")
        git("checkout", "--quiet", BRANCH, cwd=second)
        with stores_in(second / "inner") as stores:
            assert attach_store(stores).root == second

    def test_a_folder_that_was_moved_away_comes_back(self, tmp_path: Path, code: Path) -> None:
        (code / BRANCH).rename(tmp_path / "aside")
        made = attach(code)
        assert (made.root / "memory" / "note").read_text() == "remember\n"

    def test_something_else_in_its_place_stays(self, tmp_path: Path, hub: Path) -> None:
        git("clone", "--quiet", str(hub), str(tmp_path / "second"), cwd=tmp_path)
        (tmp_path / "second" / BRANCH).mkdir()
        (tmp_path / "second" / BRANCH / "mine").write_text("mine")
        with pytest.raises(ConflictError, match="not empty"):
            attach(tmp_path / "second")
        assert [path.name for path in (tmp_path / "second" / BRANCH).iterdir()] == ["mine"]

    def test_a_person_may_name_the_branch_without_a_marker(self, tmp_path: Path, hub: Path) -> None:
        git("clone", "--quiet", str(hub), str(tmp_path / "second"), cwd=tmp_path)
        (tmp_path / "second" / MARKER_FILE).unlink()
        with stores_in(tmp_path) as stores:
            made = attach_branch(stores, worktree_repo=str(tmp_path / "second"))
            assert made.root == tmp_path / "second" / BRANCH
            assert attach_branch(stores, worktree_repo=str(tmp_path / "second")).done == "there"

    def test_a_store_from_the_future_is_not_attached(self, tmp_path: Path, code: Path, hub: Path) -> None:
        root = code / BRANCH
        commit(
            root,
            PROJECT_FILE,
            (root / PROJECT_FILE).read_text().replace("schema_version: 1", "schema_version: 2"),
        )
        git("push", "--quiet", "origin", BRANCH, cwd=root)
        git("clone", "--quiet", str(hub), str(tmp_path / "second"), cwd=tmp_path)
        with pytest.raises(NewerFormat):
            attach(tmp_path / "second")
        assert branches(tmp_path / "second") == ["main"]

    def test_the_peers_marker_is_read_as_well(self, tmp_path: Path, hub: Path) -> None:
        git("clone", "--quiet", str(hub), str(tmp_path / "second"), cwd=tmp_path)
        (tmp_path / "second" / MARKER_FILE).rename(tmp_path / "second" / PEER_MARKER_FILE)
        assert attach(tmp_path / "second").done == "attached"


class TestARepositoryOfItsOwn:
    def test_an_address_in_a_marker_is_cloned_on_the_persons_word_only(
        self, tmp_path: Path, memory_hub: Path
    ) -> None:
        host = with_marker(tmp_path / "code", f"{{mode: repo, path: ./m, url: {memory_hub}}}")
        with pytest.raises(InvalidInput, match="whoever can push") as refused:
            attach(host)
        assert "--allow-clone" in refused.value.hint
        assert not (host / "m").exists()
        made = attach(host, allow_clone=True)
        assert (made.done, made.root) == ("cloned", host / "m")
        assert (host / "m" / "memory" / "note").read_text() == "remember\n"
        assert git("status", "--porcelain", cwd=host / "m") == ""

    def test_a_path_in_a_marker_is_seen_from_the_marker(self, tmp_path: Path, memory_hub: Path) -> None:
        host = with_marker(tmp_path / "code", "{mode: repo, path: ./m, url: ../memory.git}")
        (host / "src").mkdir()
        assert attach(host / "src", allow_clone=True).done == "cloned"

    def test_what_it_is_about_is_open_then(self, tmp_path: Path, memory_hub: Path) -> None:
        host = with_marker(tmp_path / "code", f"{{mode: repo, path: ./m, url: {memory_hub}}}")
        attach(host, allow_clone=True)
        with stores_in(host) as stores:
            memory = open_memory(stores)
            assert (memory.root, memory.host, memory.repository.url()) == (host / "m", host, str(memory_hub))
            assert memory.repository.is_agreed()
            assert host / "m" in known_stores(stores.paths)

    def test_a_marker_without_an_address_learns_it_from_the_store(
        self, tmp_path: Path, memory_hub: Path
    ) -> None:
        host = with_marker(tmp_path / "code", "{mode: repo, path: ./m}")
        with pytest.raises(NotFound, match="address"):
            attach(host, allow_clone=True)
        with stores_in(host) as stores:
            clone_store(stores, str(memory_hub), store=str(host / "m"))
        made = attach(host)
        assert (made.done, made.is_marker_new) == ("there", True)
        assert decode_marker((host / MARKER_FILE).read_bytes()).store.url == str(memory_hub)
        assert attach(host).is_marker_new is False

    def test_a_password_in_the_stores_address_stays_out_of_the_marker(
        self, tmp_path: Path, memory_hub: Path
    ) -> None:
        host = with_marker(tmp_path / "code", "{mode: repo, path: ./m}")
        with stores_in(host) as stores:
            clone_store(stores, str(memory_hub), store=str(host / "m"))
        git("remote", "set-url", "origin", "https://ada:hunter2@example.org/m.git", cwd=host / "m")
        made = attach(host)
        assert "hunter2" not in (host / MARKER_FILE).read_text()
        assert made.notes
        assert "hunter2" not in repr(made)

    def test_an_address_that_is_another_than_the_stores_is_told_of_and_stays(
        self, tmp_path: Path, memory_hub: Path
    ) -> None:
        host = with_marker(tmp_path / "code", f"{{mode: repo, path: ./m, url: {memory_hub}}}")
        attach(host, allow_clone=True)
        with_marker(host, "{mode: repo, path: ./m, url: https://example.org/moved.git}")
        made = attach(host)
        assert "moved.git" in made.notes[0]
        assert made.is_marker_new is False

    def test_a_place_outside_of_the_code_is_named_by_a_person_once(
        self, tmp_path: Path, memory_hub: Path
    ) -> None:
        host = with_marker(tmp_path / "code", f"{{mode: repo, path: ../m, url: {memory_hub}}}")
        with pytest.raises(InvalidInput, match="outside"):
            attach(host, allow_clone=True)
        made = attach(host, allow_clone=True, store=str(tmp_path / "m"))
        assert made.root == tmp_path / "m"
        with stores_in(host) as stores:
            assert open_memory(stores).root == tmp_path / "m"

    def test_the_branch_that_the_remote_puts_first_is_taken(self, tmp_path: Path, memory_hub: Path) -> None:
        git("branch", "-m", "main", "trunk", cwd=memory_hub)
        git("branch", "other", cwd=memory_hub)
        git("symbolic-ref", "HEAD", "refs/heads/trunk", cwd=memory_hub)
        with stores_in(tmp_path) as stores:
            assert clone_store(stores, str(memory_hub)).branch == "trunk"

    def test_a_remote_whose_default_is_not_there_has_its_main_taken(
        self, tmp_path: Path, memory_hub: Path
    ) -> None:
        git("branch", "other", cwd=memory_hub)
        git("symbolic-ref", "HEAD", "refs/heads/master", cwd=memory_hub)
        with stores_in(tmp_path) as stores:
            assert clone_store(stores, str(memory_hub)).branch == "main"

    def test_an_empty_remote_holds_no_store_and_leaves_nothing(self, tmp_path: Path) -> None:
        git("init", "--quiet", "--bare", str(tmp_path / "empty.git"), cwd=tmp_path)
        with stores_in(tmp_path) as stores, pytest.raises(NotFound):
            clone_store(stores, str(tmp_path / "empty.git"))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.git"]

    def test_neither_does_one_that_holds_code(self, tmp_path: Path) -> None:
        make_code(tmp_path / "code", hub=tmp_path / "hub.git")
        with stores_in(tmp_path) as stores, pytest.raises(NotFound, match="store"):
            clone_store(stores, str(tmp_path / "hub.git"))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["code", "hub.git"]

    def test_nor_one_that_cannot_be_reached(self, tmp_path: Path) -> None:
        with stores_in(tmp_path) as stores, pytest.raises(NetworkError):
            clone_store(stores, str(tmp_path / "nowhere.git"))
        assert list(tmp_path.iterdir()) == []

    def test_a_damaged_project_is_told_of_and_leaves_nothing(self, tmp_path: Path, memory_hub: Path) -> None:
        root = tmp_path / "origin"
        commit(root, PROJECT_FILE, "publish: perhaps\n")
        git("push", "--quiet", str(memory_hub), "main", cwd=root)
        with stores_in(tmp_path) as stores, pytest.raises(BrokenFormat):
            clone_store(stores, str(memory_hub))
        assert not (tmp_path / BRANCH).exists()

    @pytest.mark.parametrize(
        "url",
        [
            "ext::sh -c 'touch ran'",
            "--upload-pack=touch ran",
            "-oProxyCommand=touch ran",
            "file:///tmp/x",
            "https://ada:secret@example.org/x",
            "ssh://-oProxyCommand=touch/x",
            "http://example.org/x",
            "https://example.org/x%0a",
        ],
    )
    def test_an_address_that_could_do_harm_is_refused_from_anybody(self, tmp_path: Path, url: str) -> None:
        with stores_in(tmp_path) as stores, pytest.raises(InvalidInput):
            clone_store(stores, url)
        assert list(tmp_path.iterdir()) == []

    def test_offline_nothing_is_fetched(self, tmp_path: Path, memory_hub: Path) -> None:
        with stores_in(tmp_path, is_offline=True) as stores, pytest.raises(NetworkError):
            clone_store(stores, str(memory_hub))


class TestAHostileStore:
    def test_no_link_and_no_git_folder_of_it_reaches_the_disk(self, tmp_path: Path, memory_hub: Path) -> None:
        origin = tmp_path / "origin"
        head = git("rev-parse", "HEAD", cwd=origin).strip()
        content = git("rev-parse", f"HEAD:{PROJECT_FILE}", cwd=origin).strip()
        hooks = _tree_of(origin, f"100755 blob {content}\tpre-commit")
        entries = git("ls-tree", "HEAD", cwd=origin)
        entries += f"040000 tree {_tree_of(origin, f'040000 tree {hooks}' + chr(9) + 'hooks')}\t.GIT\n"
        entries += f"120000 blob {content}\tlink\n160000 commit {head}\tmodule\n"
        tree = _tree_of(origin, entries)
        evil = git(*AUTHOR, "commit-tree", "-p", "HEAD", "-m", "evil", tree, cwd=origin).strip()
        git("push", "--quiet", "--force", str(memory_hub), f"{evil}:refs/heads/main", cwd=origin)
        clone_repository(tmp_path / "clone", str(memory_hub))
        there = sorted(path.name for path in (tmp_path / "clone").iterdir())
        assert there == [".git", ".gitattributes", "memory", PROJECT_FILE, "runs"]
        assert not (tmp_path / "clone" / ".git" / "hooks").exists()

    def test_no_filter_of_the_persons_changes_its_bytes(
        self, tmp_path: Path, home: Path, memory_hub: Path
    ) -> None:
        git("config", "--global", "filter.evil.smudge", f"touch {tmp_path}/ran; cat", cwd=home)
        git("config", "--global", "core.attributesFile", str(home / "attributes"), cwd=home)
        git("config", "--global", "core.autocrlf", "true", cwd=home)
        (home / "attributes").write_text("* filter=evil text eol=crlf\n")
        clone_repository(tmp_path / "clone", str(memory_hub))
        assert (tmp_path / "clone" / "memory" / "note").read_bytes() == b"remember\n"
        assert not (tmp_path / "ran").exists()

    def test_a_template_of_the_persons_brings_no_hook_in(
        self, tmp_path: Path, home: Path, memory_hub: Path
    ) -> None:
        (home / "template" / "hooks").mkdir(parents=True)
        (home / "template" / "hooks" / "post-checkout").write_text("#!/bin/sh\n")
        git("config", "--global", "init.templateDir", str(home / "template"), cwd=home)
        clone_repository(tmp_path / "clone", str(memory_hub))
        assert not (tmp_path / "clone" / ".git" / "hooks").exists()


HOSTILE = [
    "{mode: worktree, path: ./m, branch: --upload-pack=x}",
    "{mode: worktree, path: .git/hooks, branch: b}",
    "{mode: worktree, path: ./.GIT/m, branch: b}",
    "{mode: worktree, path: 'GIT~1', branch: b}",
    "{mode: repo, path: /tmp/m, url: /tmp/x}",
    "{mode: repo, path: ../m, url: /tmp/x}",
    "{mode: repo, path: ~/m, url: /tmp/x}",
    "{mode: repo, path: ., url: /tmp/x}",
    "{mode: repo, path: a/../../m, url: /tmp/x}",
    "{mode: repo, path: ./link, url: /tmp/x}",
    "{mode: repo, path: ./link/m, url: /tmp/x}",
    "{mode: repo, path: ./m, url: 'ext::sh -c x'}",
    "{mode: repo, path: ./m, url: -x}",
    "{mode: submodule, path: ./m}",
    "{mode: worktree, path: ./m}",
    "[]",
    "null",
    "&a [*a]",
]


@pytest.mark.parametrize("name", [MARKER_FILE, PEER_MARKER_FILE])
@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_marker_is_refused_with_one_line_and_nothing_is_written(
    tmp_path: Path, text: str, name: str
) -> None:
    host = with_marker(tmp_path / "code", text, name)
    (tmp_path / "elsewhere").mkdir()
    (host / "link").symlink_to(tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    for step in (lambda: attach(host, allow_clone=True), lambda: _find(host)):
        with pytest.raises(RaddleError) as refused:
            step()
        assert refused.value.message
        assert "\n" not in refused.value.message
    assert sorted(tmp_path.rglob("*")) == before


def _find(host: Path) -> None:
    with stores_in(host) as stores:
        open_memory(stores)


def _tree_of(root: Path, entries: str) -> str:
    import subprocess

    done = subprocess.run(
        ["git", "mktree"], cwd=root, input=entries, text=True, capture_output=True, check=True
    )
    return done.stdout.strip()
