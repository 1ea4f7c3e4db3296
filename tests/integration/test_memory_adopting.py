"""A memory that another program made or that was left in the middle of something: taken over, and nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from raddle.adapters.memory_repo.making import opened
from raddle.model.errors import BrokenFormat, ConflictError, InvalidInput, NotFound
from raddle.model.memory.marker import decode_marker
from raddle.model.memory.merge import conflicts_in
from raddle.model.memory.repo_layout import ATTRIBUTES_FILE, MARKER_FILE, PEER_MARKER_FILE, PROJECT_FILE
from raddle.wiring.memory import ProjectMemory, open_memory
from raddle.wiring.memory_adopting import Adopted, Adoption, adopt, plan_adoption
from raddle.wiring.memory_making import init_store, init_worktree
from raddle.wiring.memory_places import known_stores
from raddle.wiring.memory_status import store_status
from raddle.wiring.memory_syncing import sync_memory
from tests.memory_clones import git
from tests.memory_hosts import AUTHOR, BRANCH, commit, lay, make_code, stores_in

PEER_MARKER = "schema_version: 1\nstore:\n  mode: repo\n  path: ./m\n"
PEER_SERVER = {"mcpServers": {"redthread": {"command": "redthread", "args": ["mcp-serve", "--store", "./m"]}}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: a memory, and one that went another way in the same lines; both in `hub.git`."""
    place = tmp_path_factory.mktemp("made")
    with stores_in(place, data_dir=str(place / "data"), state_dir=str(place / "state")) as stores:
        root = init_store(stores, "loom", store=str(place / "m")).root
    commit(root, "memory/note", "first\n")
    commit(root, "memory/plain", "first\n")
    git("clone", "--quiet", "--bare", str(root), str(place / "hub.git"), cwd=place)
    git("remote", "add", "origin", "../hub.git", cwd=root)
    shutil.copytree(root, place / "other")
    commit(place / "other", "memory/note", "theirs\n")
    commit(place / "other", "memory/new-of-theirs", "theirs\n")
    commit(place / "other", "memory/plain", "theirs\n")
    git("push", "--quiet", "origin", "main", cwd=place / "other")
    git("fetch", "--quiet", cwd=root)
    for path, text in (
        ("memory/note", "ours\n"),
        ("memory/new-of-ours", "ours\n"),
        ("memory/note", "ours, later\n"),
    ):
        commit(root, path, text)
    return place


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A clone with three commits of its own, which its remote has gone past."""
    shutil.copytree(made / "hub.git", tmp_path / "hub.git")
    return Path(shutil.copytree(made / "m", tmp_path / "m"))


def git_stops(root: Path, *arguments: str) -> None:
    """Have git begin something that it cannot finish."""
    done = subprocess.run(["git", *AUTHOR, *arguments], cwd=root, capture_output=True, check=False)
    assert done.returncode != 0, done


def commits(root: Path) -> set[str]:
    """Every commit that something names."""
    return set(git("rev-list", "--all", "HEAD", cwd=root).split())


def taken_over(root: Path) -> Adopted:
    """Adopt the store at `root`, as somebody who says yes."""
    with stores_in(root.parent) as stores:
        return adopt(stores, plan_adoption(stores, str(root)))


def planned(place: Path) -> Adoption:
    """What adopting would come to."""
    with stores_in(place) as stores:
        return plan_adoption(stores, str(place))


def text(root: Path, path: str) -> str:
    return (root / path).read_text()


def sane(root: Path) -> None:
    """HEAD is on `main`, in the middle of nothing, and a sync goes through; no file but a conflict has markers."""
    assert git("symbolic-ref", "HEAD", cwd=root) == "refs/heads/main\n"
    assert [
        name for name in os.listdir(root / ".git") if name.startswith(("rebase", "MERGE", "CHERRY"))
    ] == []
    with stores_in(root) as stores:
        memory = ProjectMemory(stores, root)
        assert sync_memory(memory).state == "in_step"
        status = store_status(memory)
    assert (status.changes, status.unpushed) == ((), 0)
    marked = [path for path in opened(root)[0].paths() if "<<<<<<<" in text(root, path)]
    assert set(marked) <= set(conflicts_in(dict.fromkeys(marked)))


def said_in(root: Path, path: str) -> list[str]:
    """What a memory says, and what its conflicts say."""
    return [
        text(root, one)
        for one in opened(root)[0].paths()
        if one == path or one.startswith(f"{path}.conflict-")
    ]


class TestHalfDone:
    @pytest.fixture(autouse=True)
    def everything_stays(self, root: Path) -> None:
        self.before = commits(root)

    def check(self, root: Path) -> None:
        """No commit was lost, and nothing that anybody wrote."""
        assert self.before <= commits(root)
        sane(root)
        assert text(root, "memory/new-of-ours") == "ours\n"
        assert text(root, "memory/new-of-theirs") == "theirs\n"
        assert text(root, "memory/plain") == "theirs\n"
        assert {"ours, later\n", "theirs\n"} <= set(said_in(root, "memory/note"))

    def test_a_rebase_that_stopped_in_a_conflict(self, root: Path) -> None:
        git_stops(root, "pull", "--rebase", "origin", "main")
        assert "<<<<<<<" in text(root, "memory/note")
        done = taken_over(root)
        assert done.is_merged
        assert "memory/note" in done.aside
        assert "<<<<<<<" not in text(root, "memory/note")
        self.check(root)

    def test_what_was_written_meanwhile_stays(self, root: Path) -> None:
        git_stops(root, "pull", "--rebase", "origin", "main")
        lay(root, {"memory/meanwhile": "mine\n", "memory/plain": "mine too\n"})
        taken_over(root)
        assert text(root, "memory/meanwhile") == "mine\n"
        assert text(root, "memory/plain") == "mine too\n"
        sane(root)

    def test_what_another_program_committed_in_the_middle_of_it_stays(self, root: Path) -> None:
        git_stops(root, "pull", "--rebase", "origin", "main")
        lay(root, {"memory/meanwhile": "mine\n"})
        git("add", "-A", cwd=root)
        git(*AUTHOR, "commit", "--quiet", "-m", "auto", cwd=root)
        self.before |= commits(root)
        taken_over(root)
        assert text(root, "memory/meanwhile") == "mine\n"
        assert "<<<<<<<" not in text(root, "memory/note")
        self.check(root)

    def test_a_conflict_that_was_staged_and_not_committed(self, root: Path) -> None:
        git_stops(root, "pull", "--rebase", "origin", "main")
        lay(root, {"memory/meanwhile": "mine\n"})
        git("add", "-A", cwd=root)
        taken_over(root)
        assert text(root, "memory/meanwhile") == "mine\n"
        assert "<<<<<<<" not in text(root, "memory/note")
        self.check(root)

    def test_a_rebase_of_the_older_kind(self, root: Path) -> None:
        git_stops(root, "-c", "rebase.backend=apply", "pull", "--rebase", "origin", "main")
        taken_over(root)
        self.check(root)

    def test_a_rebase_that_put_changes_aside_first(self, root: Path) -> None:
        lay(root, {"memory/plain": "not committed\n"})
        git_stops(root, "pull", "--rebase", "--autostash", "origin", "main")
        done = taken_over(root)
        kept = [git("show", f"{ref}:memory/plain", cwd=root) for ref in done.rescued]
        assert "not committed\n" in kept
        sane(root)

    def test_a_merge_that_stopped_in_a_conflict(self, root: Path) -> None:
        git_stops(root, "pull", "--no-rebase", "origin", "main")
        done = taken_over(root)
        assert "memory/note" in done.aside
        assert text(root, "memory/note") == "ours, later\n"
        self.check(root)

    def test_a_cherry_pick_that_stopped(self, root: Path) -> None:
        git_stops(root, "cherry-pick", "origin/main~2")
        taken_over(root)
        self.check(root)

    def test_a_project_file_full_of_markers(self, root: Path) -> None:
        project = text(root, PROJECT_FILE)
        other = root.parent / "other"
        git("clone", "--quiet", str(root.parent / "hub.git"), str(other), cwd=root.parent)
        commit(other, PROJECT_FILE, project.replace("- build", "- begin"))
        git("push", "--quiet", "origin", "main", cwd=other)
        commit(root, PROJECT_FILE, project.replace("- build", "- start"))
        self.before |= commits(root)
        git_stops(root, "-c", "core.editor=true", "pull", "--rebase", "origin", "main")
        git_stops(root, "-c", "core.editor=true", "rebase", "--skip")
        git("checkout", "--quiet", "--ours", "memory/note", cwd=root)
        git("add", "memory/note", cwd=root)
        git_stops(root, "-c", "core.editor=true", "rebase", "--continue")
        assert "<<<<<<<" in text(root, PROJECT_FILE)
        taken_over(root)
        assert {"begin", "start"} <= set(_phases(root))
        self.check(root)


class TestAHeadOnNoBranch:
    def test_commits_on_top_of_the_branch_become_its_own(self, root: Path) -> None:
        git("checkout", "--quiet", "--detach", cwd=root)
        commit(root, "memory/more", "more\n")
        head = git("rev-parse", "HEAD", cwd=root)
        taken_over(root)
        assert git("rev-parse", "main", cwd=root) == head
        sane(root)

    def test_commits_beside_the_branch_are_merged_by_record(self, root: Path) -> None:
        git("checkout", "--quiet", "--detach", "HEAD~1", cwd=root)
        commit(root, "memory/more", "more\n")
        assert taken_over(root).is_merged
        assert text(root, "memory/more") == "more\n"
        assert text(root, "memory/note") == "ours, later\n"
        sane(root)

    def test_an_older_commit_brings_nothing_back(self, root: Path) -> None:
        git("checkout", "--quiet", "--detach", "HEAD~2", cwd=root)
        taken_over(root)
        assert text(root, "memory/new-of-ours") == "ours\n"
        assert text(root, "memory/note") == "ours, later\n"
        sane(root)

    def test_which_branch_is_meant_has_to_be_said_where_nothing_says_it(self, root: Path) -> None:
        git("branch", "-m", "main", "a", cwd=root)
        git("checkout", "--quiet", "--detach", "a", cwd=root)
        git("branch", "b", cwd=root)
        with pytest.raises(BrokenFormat, match="no branch"):
            planned(root)


class TestALockThatWasLeft:
    def test_an_old_one_goes(self, root: Path) -> None:
        lock = root / ".git" / "index.lock"
        lock.touch()
        os.utime(lock, (1, 1))
        assert "index.lock" in planned(root).trouble[0]
        taken_over(root)
        assert not lock.exists()
        sane(root)

    def test_a_young_one_may_be_somebodys(self, root: Path) -> None:
        lock = root / ".git" / "index.lock"
        lock.touch()
        with pytest.raises(ConflictError, match="at work"):
            taken_over(root)
        assert lock.exists()


class TestWhatIsLookedAtFirst:
    def test_a_plan_changes_nothing(self, root: Path) -> None:
        git_stops(root, "pull", "--rebase", "origin", "main")
        lay(root.parent, {PEER_MARKER_FILE: PEER_MARKER, ".mcp.json": json.dumps(PEER_SERVER)})
        before = {path: path.read_bytes() for path in root.parent.rglob("*") if path.is_file()}
        plan = planned(root)
        assert plan.trouble[0] == "a rebase was left half done"
        assert plan.is_needed
        assert {path: path.read_bytes() for path in root.parent.rglob("*") if path.is_file()} == before

    def test_a_store_that_is_well_needs_nothing(self, root: Path) -> None:
        assert not planned(root).is_needed
        taken_over(root)
        sane(root)

    def test_files_with_markers_are_named_and_left(self, root: Path) -> None:
        marked = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n"
        commit(root, "memory/bad", marked)
        commit(root, "memory/about-git", "a conflict looks like <<<<<<< this\n")
        assert taken_over(root).with_markers == ("memory/bad",)
        assert text(root, "memory/bad") == marked

    def test_a_folder_that_is_no_store_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound):
            planned(tmp_path)
        with pytest.raises(NotFound):
            planned(make_code(tmp_path / "code"))

    def test_code_of_another_store_is_refused(self, root: Path) -> None:
        lay(root.parent / "code", {PEER_MARKER_FILE: PEER_MARKER})
        with stores_in(root) as stores, pytest.raises(InvalidInput, match="another store"):
            plan_adoption(stores, str(root), host_repo=str(root.parent / "code"))


class TestTheCode:
    def test_the_peers_marker_and_server_become_ours(self, root: Path) -> None:
        code = root.parent
        lay(
            code,
            {
                PEER_MARKER_FILE: f"# our memory\n{PEER_MARKER}",
                ".mcp.json": json.dumps(PEER_SERVER, indent=2),
            },
        )
        plan = planned(code)
        assert plan.root == root
        assert '+      "command": "raddle"' in plan.diff
        with stores_in(code) as stores:
            done = adopt(stores, plan)
            assert open_memory(stores).host == code
            assert known_stores(stores.paths) == [root]
        assert done.files == (str(code / MARKER_FILE), str(code / ".mcp.json"))
        assert decode_marker((code / MARKER_FILE).read_bytes()).store.path == "./m"
        assert (code / MARKER_FILE).read_text().startswith("# our memory\n")
        assert (code / PEER_MARKER_FILE).exists()
        server = json.loads((code / ".mcp.json").read_text())["mcpServers"]["redthread"]
        assert server == {"command": "raddle", "args": ["mcp-serve", "--store", "./m"]}
        assert not planned(code).is_needed

    def test_a_file_that_changed_meanwhile_is_not_written_over(self, root: Path) -> None:
        code = root.parent
        lay(code, {PEER_MARKER_FILE: PEER_MARKER, ".mcp.json": json.dumps(PEER_SERVER)})
        plan = planned(code)
        (code / ".mcp.json").write_text("{}")
        with stores_in(code) as stores, pytest.raises(ConflictError):
            adopt(stores, plan)
        assert (code / ".mcp.json").read_text() == "{}"

    def test_a_registration_that_is_no_json_is_told_of(self, root: Path) -> None:
        lay(root.parent, {PEER_MARKER_FILE: PEER_MARKER, ".mcp.json": "{"})
        with pytest.raises(BrokenFormat, match=r"\.mcp\.json"):
            planned(root.parent)

    def test_a_registration_that_is_a_link_to_elsewhere_is_left_alone(self, root: Path) -> None:
        code, elsewhere = root.parent, root.parent.parent / f"{root.parent.name}-elsewhere.json"
        lay(code, {PEER_MARKER_FILE: PEER_MARKER})
        elsewhere.write_text(json.dumps(PEER_SERVER))
        (code / ".mcp.json").symlink_to(elsewhere)
        assert [change.path for change in planned(code).changes] == [code / MARKER_FILE]


class TestAWorkingTreeOfTheCode:
    def test_code_that_was_moved_with_its_memory_finds_it_again(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        with stores_in(code) as stores:
            init_worktree(stores, "loom", worktree_repo=str(code))
        code.rename(tmp_path / "moved")
        moved = tmp_path / "moved" / BRANCH
        with pytest.raises(BrokenFormat) as broken, stores_in(moved) as stores:
            ProjectMemory(stores, moved).repository.branch()
        assert "raddle store adopt" in broken.value.hint
        taken_over(moved)
        assert git("status", "--porcelain", cwd=moved) == ""
        assert git("symbolic-ref", "HEAD", cwd=moved) == f"refs/heads/{BRANCH}\n"

    def test_a_rebase_in_it_is_mended_and_the_code_untouched(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code", hub=tmp_path / "hub.git")
        with stores_in(code) as stores:
            root = init_worktree(stores, "loom", worktree_repo=str(code)).root
        commit(root, "memory/note", "first\n")
        git("push", "--quiet", "origin", f"HEAD:{BRANCH}", cwd=root)
        commit(root, "memory/note", "theirs\n")
        git("push", "--quiet", "origin", f"HEAD:{BRANCH}", cwd=root)
        git("reset", "--quiet", "--hard", "HEAD~1", cwd=root)
        commit(root, "memory/note", "ours\n")
        git_stops(root, "pull", "--rebase", "origin", BRANCH)
        head = git("rev-parse", "main", cwd=code)
        taken_over(root)
        assert git("symbolic-ref", "HEAD", cwd=root) == f"refs/heads/{BRANCH}\n"
        assert {"ours\n", "theirs\n"} <= set(said_in(root, "memory/note"))
        assert (git("rev-parse", "main", cwd=code), git("symbolic-ref", "HEAD", cwd=code)) == (
            head,
            "refs/heads/main\n",
        )


def test_a_store_without_git_gets_a_repository_of_its_own(root: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ATTRIBUTES_FILE).unlink()
    taken_over(root)
    with stores_in(root) as stores:
        assert sync_memory(ProjectMemory(stores, root)).state == "no_remote"
    assert git("status", "--porcelain", "--untracked-files=no", cwd=root) == ""
    assert text(root, ATTRIBUTES_FILE) == "* -text\n"


def test_a_store_whose_files_are_gone_has_them_again(root: Path) -> None:
    for path in root.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert "missing" in planned(root).trouble[-1]
    taken_over(root)
    assert text(root, "memory/note") == "ours, later\n"
    sane(root)


def _phases(root: Path) -> tuple[str, ...]:
    with stores_in(root) as stores:
        return ProjectMemory(stores, root).project.phases
