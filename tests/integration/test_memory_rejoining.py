"""A memory whose git is damaged or gone: joined to the repository that it belongs to, and never made an empty twin."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from raddle.model.errors import (
    BrokenFormat,
    ConflictError,
    InvalidInput,
    NetworkError,
    NotFound,
    RaddleError,
)
from raddle.model.memory.repo_layout import MARKER_FILE, PROJECT_FILE
from raddle.wiring.memory import ProjectMemory, open_memory
from raddle.wiring.memory_adopting import Adopted, adopt, plan_adoption
from raddle.wiring.memory_making import StoreMade, attach_store, init_store, init_worktree
from raddle.wiring.memory_places import known_stores
from raddle.wiring.memory_status import store_status
from raddle.wiring.memory_syncing import sync_memory
from tests.memory_clones import git
from tests.memory_hosts import BRANCH, commit, lay, make_code, stores_in, untouchable, work_in_progress

OTHERS = ("theirs", "theirs, later")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: code with a memory on a branch of its own, pushed, and a memory by itself with its remote."""
    place = tmp_path_factory.mktemp("made")
    code = make_code(place / "code", hub=place / "hub.git")
    with stores_in(code, data_dir=str(place / "data"), state_dir=str(place / "state")) as stores:
        root = init_worktree(stores, "loom", worktree_repo=str(code)).root
        alone = init_store(stores, "loom", store=str(place / "m")).root
    (root / "memory" / "team").mkdir()
    (alone / "memory" / "team").mkdir()
    commit(root, "memory/team/note", "first\n")
    commit(alone, "memory/team/note", "first\n")
    git("push", "--quiet", "origin", BRANCH, cwd=root)
    git("clone", "--quiet", "--bare", str(alone), str(place / "memory.git"), cwd=place)
    shutil.rmtree(root)
    return place


@pytest.fixture
def code(made: Path, tmp_path: Path) -> Path:
    """Code with work in progress and its memory, in which something is not committed yet."""
    shutil.copytree(made / "hub.git", tmp_path / "hub.git")
    shutil.copytree(made / "code", tmp_path / "code")
    code = tmp_path / "code"
    git("remote", "set-url", "origin", str(tmp_path / "hub.git"), cwd=code)
    git("worktree", "prune", cwd=code)
    attached(code)
    (code / BRANCH / "memory" / "team" / "mine").write_text("mine\n")
    work_in_progress(code)
    return code


@pytest.fixture
def alone(made: Path, tmp_path: Path) -> Path:
    """Code whose marker names a memory of its own at an address; it is here, and its git is gone."""
    shutil.copytree(made / "memory.git", tmp_path / "memory.git")
    marker = f"schema_version: 1\nstore: {{mode: repo, path: ./m, url: {tmp_path}/memory.git}}\n"
    lay(tmp_path / "code", {MARKER_FILE: marker})
    attached(tmp_path / "code", allow_clone=True)
    root = tmp_path / "code" / "m"
    shutil.rmtree(root / ".git")
    (root / "memory" / "team" / "mine").write_text("mine\n")
    return root


def attached(host: Path, *, allow_clone: bool = False) -> StoreMade:
    """Attach what the marker of `host` names."""
    with stores_in(host) as stores:
        return attach_store(stores, allow_clone=allow_clone)


def adopted(root: Path) -> Adopted:
    """Adopt the store at `root`, as somebody who says yes."""
    with stores_in(root.parent) as stores:
        return adopt(stores, plan_adoption(stores, str(root)))


def told(root: Path) -> str:
    """What would be done about it, in words."""
    with stores_in(root.parent) as stores:
        plan = plan_adoption(stores, str(root))
    assert plan.is_needed
    return "; ".join(plan.trouble)


def synced(root: Path) -> str:
    """A sync, and how it ended."""
    with stores_in(root) as stores:
        return sync_memory(ProjectMemory(stores, root), may_publish=True).state


def apart(code: Path) -> str:
    """What the status says of the store and the marker."""
    with stores_in(code) as stores:
        return store_status(open_memory(stores)).apart


def write_by_others(hub: Path, branch: str) -> None:
    """Two commits at the remote: one changes the note, one adds another."""
    other = hub.parent / "other"
    git("clone", "--quiet", "--branch", branch, str(hub), str(other), cwd=hub.parent)
    for text in OTHERS:
        commit(other, "memory/team/note", f"{text}\n")
    commit(other, "memory/team/new", "new\n")
    git("push", "--quiet", "origin", branch, cwd=other)


def check_joined(code: Path, first: str) -> None:
    """The store is on the branch, its history is that of before, and what was written goes to the remote."""
    root = code / BRANCH
    assert git("symbolic-ref", "HEAD", cwd=root) == f"refs/heads/{BRANCH}\n"
    assert (root / "memory" / "team" / "mine").read_text() == "mine\n"
    assert f"worktree {root}\n" in git("worktree", "list", "--porcelain", cwd=code)
    assert git("status", "--porcelain", cwd=root) == "?? memory/team/mine\n"
    assert synced(root) == "in_step"
    assert git("merge-base", "--is-ancestor", first, BRANCH, cwd=code.parent / "hub.git") == ""
    assert git("show", f"{BRANCH}:memory/team/mine", cwd=code.parent / "hub.git") == "mine\n"
    assert apart(code) == ""


def _registration(code: Path) -> Path:
    return code / ".git" / "worktrees" / BRANCH


def _all_of_it(code: Path) -> None:
    (code / BRANCH / ".git").unlink()
    shutil.rmtree(_registration(code))


def _a_folder(code: Path) -> None:
    (code / BRANCH / ".git").unlink()
    (code / BRANCH / ".git").mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "gone": lambda code: (code / BRANCH / ".git").unlink(),
    "empty": lambda code: (code / BRANCH / ".git").write_bytes(b""),
    "no text": lambda code: (code / BRANCH / ".git").write_bytes(b"\0\xff" * 50),
    "leads nowhere": lambda code: (code / BRANCH / ".git").write_text("gitdir: /nowhere/.git/worktrees/x\n"),
    "leads to itself": lambda code: (code / BRANCH / ".git").write_text("gitdir: .\n"),
    "an empty folder": _a_folder,
    "not registered": lambda code: shutil.rmtree(_registration(code)),
    "neither": _all_of_it,
    "registered without HEAD": lambda code: (_registration(code) / "HEAD").unlink(),
    "registered with an empty HEAD": lambda code: (_registration(code) / "HEAD").write_bytes(b""),
    "registered without its repository": lambda code: (_registration(code) / "commondir").unlink(),
}


def _adopted(code: Path) -> Adopted:
    return adopted(code / BRANCH)


@pytest.mark.parametrize(
    ("damage", "how"),
    [
        *(pytest.param(damage, _adopted, id=f"{name}, adopted") for name, damage in DAMAGE.items()),
        *(
            pytest.param(DAMAGE[name], attached, id=f"{name}, attached")
            for name in ("gone", "not registered", "neither")
        ),
    ],
)
def test_a_working_tree_is_linked_to_its_branch_again_and_no_file_is_touched(
    code: Path, damage: Callable[[Path], object], how: Callable[[Path], object]
) -> None:
    first = git("rev-parse", BRANCH, cwd=code).strip()
    before = untouchable(code)
    damage(code)
    with stores_in(code) as stores, pytest.raises(BrokenFormat) as broken:
        store_status(open_memory(stores))
    assert "raddle store adopt" in broken.value.hint
    how(code)
    assert untouchable(code) == before
    check_joined(code, first)


@pytest.mark.parametrize("place", ["/nowhere/raddle-store/.git\n", ""])
def test_a_registration_of_another_place_is_told_of_and_corrected(code: Path, place: str) -> None:
    (_registration(code) / "gitdir").write_text(place)
    first = git("rev-parse", BRANCH, cwd=code).strip()
    assert "git takes it to be at" in apart(code)
    adopted(code / BRANCH)
    check_joined(code, first)


def test_a_store_without_a_marker_is_found_by_what_git_noted_of_it(code: Path) -> None:
    first = git("rev-parse", BRANCH, cwd=code).strip()
    marker = (code / MARKER_FILE).read_bytes()
    (code / MARKER_FILE).unlink()
    (code / BRANCH / ".git").unlink()
    adopted(code / BRANCH)
    (code / BRANCH / ".git").unlink()
    shutil.rmtree(_registration(code))
    assert f"joined to the branch {BRANCH}" in told(code / BRANCH)
    adopted(code / BRANCH)
    (code / MARKER_FILE).write_bytes(marker)
    check_joined(code, first)


def test_without_a_marker_a_branch_of_another_project_is_not_taken(code: Path) -> None:
    root = code / BRANCH
    (code / MARKER_FILE).unlink()
    (root / PROJECT_FILE).write_text((root / PROJECT_FILE).read_text().replace("loom", "other"))
    shutil.rmtree(_registration(code))
    with pytest.raises(BrokenFormat, match="does not know it any more") as refused:
        adopted(root)
    assert "--host-repo" in refused.value.hint
    (root / ".git").unlink()
    assert "shares no history" in told(root)


def test_a_repository_that_was_begun_in_its_place_is_told_of_and_put_aside(code: Path) -> None:
    root, first = code / BRANCH, git("rev-parse", BRANCH, cwd=code).strip()
    (root / ".git").unlink()
    git("init", "--quiet", "--initial-branch=main", ".", cwd=root)
    commit(root, "memory/team/note", "first\n")
    unrelated = git("rev-parse", "HEAD", cwd=root).strip()
    assert f"branch {BRANCH}" in apart(code)
    assert attached(code).notes[0].startswith("it is a repository of its own")
    aside = adopted(root).put_aside
    assert aside is not None
    assert git("--git-dir", str(aside), "rev-parse", "main", cwd=code).strip() == unrelated
    check_joined(code, first)


def test_a_store_that_was_switched_to_another_branch_is_told_of_and_goes_back(code: Path) -> None:
    root, first = code / BRANCH, git("rev-parse", BRANCH, cwd=code).strip()
    git("switch", "--quiet", "-c", "other", cwd=root)
    commit(root, "memory/team/astray", "astray\n")
    with pytest.raises(BrokenFormat, match="on the branch other"):
        apart(code)
    assert "on the branch other" in told(root)
    assert adopted(root).rescued
    assert git("show", f"{BRANCH}:memory/team/astray", cwd=code) == "astray\n"
    check_joined(code, first)


def test_one_that_has_a_remote_is_left_to_the_person(code: Path) -> None:
    root = code / BRANCH
    (root / ".git").unlink()
    git("init", "--quiet", "--initial-branch=main", ".", cwd=root)
    git("remote", "add", "origin", "../elsewhere.git", cwd=root)
    assert "with a remote" in apart(code)
    adopted(root)
    assert (root / ".git").is_dir()


def test_code_that_was_copied_with_its_memory_has_the_branch_of_the_copy(code: Path) -> None:
    copy = code.parent / "copy"
    shutil.copytree(code, copy, symlinks=True)
    before = git("rev-parse", BRANCH, cwd=code)
    first = before.strip()
    assert str(code / BRANCH) in apart(copy)
    adopted(copy / BRANCH)
    check_joined(copy, first)
    assert git("rev-parse", BRANCH, cwd=code) == before
    assert apart(code) == ""


def test_a_branch_that_another_folder_has_is_left_to_it(code: Path) -> None:
    shutil.copytree(code / BRANCH, code / "inner" / BRANCH)
    shutil.copy(code / MARKER_FILE, code / "inner")
    (code / "inner" / BRANCH / ".git").unlink()
    for how in (attached, lambda inner: adopted(inner / BRANCH)):
        with pytest.raises(ConflictError, match="checked out at"):
            how(code / "inner")
    assert git("rev-parse", "--show-toplevel", cwd=code / BRANCH).strip() == str(code / BRANCH)


def test_a_folder_on_a_disk_that_is_away_keeps_its_branch(code: Path) -> None:
    git("worktree", "lock", str(code / BRANCH), cwd=code)
    git("worktree", "move", "-f", "-f", BRANCH, str(code.parent / "disk"), cwd=code)
    shutil.copytree(code.parent / "disk", code / BRANCH)
    (code / BRANCH / ".git").unlink()
    (code.parent / "disk").rename(code.parent / "away")
    with pytest.raises(ConflictError, match="locked"):
        adopted(code / BRANCH)


def test_code_that_was_cloned_anew_gets_what_others_wrote_and_none_of_it_is_undone(code: Path) -> None:
    hub, root = code.parent / "hub.git", code / BRANCH
    write_by_others(hub, BRANCH)
    shutil.rmtree(code / ".git")
    git("clone", "--quiet", "--no-checkout", str(hub), str(code.parent / "fresh"), cwd=code.parent)
    (code.parent / "fresh" / ".git").rename(code / ".git")
    assert "fetched from origin" in told(root)
    adopted(root)
    assert synced(root) == "in_step"
    for place in (root / "memory" / "team" / "note",):
        assert place.read_text() == f"{OTHERS[-1]}\n"
    assert (root / "memory" / "team" / "new").exists()
    assert git("show", f"{BRANCH}:memory/team/mine", cwd=hub) == "mine\n"
    assert git("show", f"{BRANCH}:memory/team/note", cwd=hub) == f"{OTHERS[-1]}\n"


def test_a_branch_that_is_nowhere_begins_anew_for_a_person_only(code: Path) -> None:
    root = code / BRANCH
    shutil.rmtree(code / ".git")
    with pytest.raises(NotFound, match="git repository"):
        adopted(root)
    git("init", "--quiet", "--initial-branch=main", ".", cwd=code)
    assert "begins anew" in told(root)
    with pytest.raises(NotFound) as refused:
        attached(code)
    assert "raddle store adopt" in refused.value.hint
    adopted(root)
    assert synced(root) == "no_remote"
    assert git("show", f"{BRANCH}:memory/team/mine", cwd=code) == "mine\n"
    assert git("symbolic-ref", "HEAD", cwd=code) == "refs/heads/main\n"


class TestOfCodeThatIsGone:
    @pytest.fixture
    def left(self, code: Path) -> Path:
        """The folder of a memory whose code is deleted, with all that was ever committed in it."""
        return (code / BRANCH).rename(code.parent / "left")

    @pytest.fixture(autouse=True)
    def _gone(self, left: Path, code: Path) -> None:
        shutil.rmtree(code)

    def held(self, root: Path) -> dict[str, str]:
        return {
            path: (root / path).read_text() for path in ("memory/team/note", "memory/team/mine", PROJECT_FILE)
        }

    def test_its_files_are_a_store_of_their_own_once_somebody_says_so(self, left: Path) -> None:
        before = self.held(left)
        said = told(left)
        assert f"{left.parent}/code/.git, which is not there any more" in said
        assert "--host-repo CODE" in said
        adopted(left)
        assert synced(left) == "no_remote"
        assert self.held(left) == before
        assert git("show", "HEAD:memory/team/mine", cwd=left) == "mine\n"
        assert git("status", "--porcelain", cwd=left) == ""
        with stores_in(left) as stores:
            assert store_status(open_memory(stores)).mode == "repo"

    @pytest.mark.parametrize("branch", [None, "notes"])
    def test_a_person_has_them_on_a_branch_of_other_code(self, left: Path, branch: str | None) -> None:
        before = self.held(left)
        other = make_code(left.parent / "other")
        work_in_progress(other)
        untouched = untouchable(other)
        with stores_in(left.parent) as stores:
            adopt(stores, plan_adoption(stores, str(left), host_repo=str(other), branch=branch))
        (other / MARKER_FILE).rename(left.parent / "marker")
        assert untouchable(other) == untouched
        (left.parent / "marker").rename(other / MARKER_FILE)
        assert synced(left) == "no_remote"
        assert self.held(left) == before
        assert git("show", f"{branch or BRANCH}:memory/team/mine", cwd=other) == "mine\n"
        with stores_in(left) as stores:
            now = store_status(open_memory(stores))
        assert (now.host, now.mode, now.branch, now.apart) == (str(other), "worktree", branch or BRANCH, "")

    def test_in_a_clone_of_the_code_it_has_its_history_again(self, left: Path) -> None:
        hub = left.parent / "hub.git"
        first = git("rev-parse", BRANCH, cwd=hub).strip()
        write_by_others(hub, BRANCH)
        git("clone", "--quiet", str(hub), "again", cwd=left.parent)
        with stores_in(left.parent) as stores:
            adopt(stores, plan_adoption(stores, str(left), host_repo=str(left.parent / "again")))
        assert synced(left) == "in_step"
        assert git("merge-base", "--is-ancestor", first, BRANCH, cwd=hub) == ""
        assert git("show", f"{BRANCH}:memory/team/mine", cwd=hub) == "mine\n"
        assert git("show", f"{BRANCH}:memory/team/note", cwd=hub) == f"{OTHERS[-1]}\n"

    def test_a_branch_of_another_project_is_not_taken_and_nothing_changes(self, left: Path) -> None:
        other = make_code(left.parent / "other")
        with stores_in(other) as stores:
            init_worktree(stores, "another", worktree_repo=str(other))
        link = (left / ".git").read_bytes()
        with stores_in(left.parent) as stores, pytest.raises(InvalidInput) as refused:
            plan = plan_adoption(stores, str(left), host_repo=str(other))
            adopt(stores, plan)
        assert refused.value.hint
        assert (left / ".git").read_bytes() == link


def test_who_names_another_repository_than_the_one_that_has_its_history_is_told(code: Path) -> None:
    root, other = code / BRANCH, make_code(code.parent / "other")
    (root / ".git").unlink()
    for _ in ("with its marker", "without it"):
        with (
            stores_in(code.parent) as stores,
            pytest.raises(InvalidInput, match=r"belongs to|the branch") as refused,
        ):
            plan_adoption(stores, str(root), host_repo=str(other))
        assert "leave --host-repo out" in refused.value.hint
        (code / MARKER_FILE).unlink(missing_ok=True)


def test_a_store_by_itself_that_was_switched_to_another_branch_goes_back_too(alone: Path) -> None:
    adopted(alone)
    assert synced(alone) == "in_step"
    git("switch", "--quiet", "-c", "other", cwd=alone)
    assert "belongs on main" in told(alone)
    adopted(alone)
    assert git("symbolic-ref", "HEAD", cwd=alone) == "refs/heads/main\n"


def test_a_remote_that_cannot_be_asked_is_no_remote_without_the_branch(code: Path) -> None:
    hub = code.parent / "hub.git"
    shutil.rmtree(code / ".git")
    git("init", "--quiet", "--initial-branch=main", ".", cwd=code)
    git("remote", "add", "origin", str(hub), cwd=code)
    hub.rename(code.parent / "away.git")
    with pytest.raises(NetworkError):
        adopted(code / BRANCH)
    assert not (code / BRANCH / ".git").is_dir()


class TestARepositoryOfItsOwn:
    def test_it_is_joined_to_its_remote_and_nothing_of_others_is_undone(self, alone: Path) -> None:
        hub = alone.parent.parent / "memory.git"
        write_by_others(hub, "main")
        assert str(hub) in told(alone)
        adopted(alone)
        assert git("status", "--porcelain", cwd=alone) == "?? memory/team/mine\n"
        assert synced(alone) == "in_step"
        assert (alone / "memory" / "team" / "note").read_text() == f"{OTHERS[-1]}\n"
        assert (alone / "memory" / "team" / "new").exists()
        assert git("show", "main:memory/team/mine", cwd=hub) == "mine\n"

    def test_attach_does_it_on_the_persons_word_only(self, alone: Path) -> None:
        with pytest.raises(InvalidInput, match="whoever can push"):
            attached(alone.parent)
        assert not (alone / ".git").exists()
        assert attached(alone.parent, allow_clone=True).done == "attached"
        assert synced(alone) == "in_step"

    def test_a_remote_of_another_project_or_that_is_away_changes_nothing(self, alone: Path) -> None:
        project = (alone / PROJECT_FILE).read_text()
        (alone / PROJECT_FILE).write_text(project.replace("loom", "other"))
        with pytest.raises(ConflictError, match="that of other"):
            adopted(alone)
        (alone / PROJECT_FILE).write_text(project)
        (alone.parent.parent / "memory.git").rename(alone.parent.parent / "away.git")
        with pytest.raises(NetworkError):
            adopted(alone)
        assert sorted(path.name for path in alone.iterdir()) == [
            ".gitattributes",
            "memory",
            PROJECT_FILE,
            "runs",
        ]
        assert sorted(path.name for path in alone.parent.iterdir()) == [MARKER_FILE, "m"]

    @pytest.mark.parametrize("part", ["HEAD", "config", "refs"])
    def test_parts_of_it_that_are_lost_are_made_again_and_the_code_around_is_not_taken_for_it(
        self, tmp_path: Path, part: str
    ) -> None:
        code = make_code(tmp_path / "code")
        with stores_in(code) as stores:
            root = init_store(stores, "loom", store=str(code / BRANCH), host_repo=str(code)).root
        (root / "memory" / "team").mkdir()
        commit(root, "memory/team/note", "first\n")
        git("pack-refs", "--all", cwd=root)
        first = git("rev-parse", "HEAD", cwd=root)
        work_in_progress(code)
        before = untouchable(code)
        broken = root / ".git" / part
        shutil.rmtree(broken) if broken.is_dir() else broken.unlink()
        with pytest.raises(RaddleError) as refused, stores_in(root) as stores:
            store_status(ProjectMemory(stores, root))
        assert "raddle store adopt" in refused.value.hint
        adopted(root)
        assert git("rev-parse", "HEAD", cwd=root) == first
        assert synced(root) == "no_remote"
        assert untouchable(code) == before
        assert not (code / ".git" / "raddle").exists()


class TestFilesThatAreGone:
    """`how` brings them back; the store is on a branch of the code, or a repository of its own."""

    @pytest.fixture(params=["worktree", "repo"])
    def root(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        code = make_code(tmp_path / "code")
        with stores_in(code) as stores:
            if request.param == "worktree":
                root = init_worktree(stores, "loom", worktree_repo=str(code)).root
            else:
                root = init_store(stores, "loom", host_repo=str(code)).root
        (root / "memory" / "team").mkdir()
        commit(root, "memory/team/note", "first\n")
        synced(root)
        return root

    def test_a_store_without_its_folders_is_one_and_a_sync_brings_them_back(self, root: Path) -> None:
        shutil.rmtree(root / "runs")
        shutil.rmtree(root / "memory")
        for place in (root, root.parent):
            with stores_in(place) as stores:
                assert open_memory(stores).root == root
                assert root in known_stores(stores.paths)
        with stores_in(root.parent) as stores:
            assert attach_store(stores).done == "there"
            sync_memory(open_memory(stores), removals="none")
        assert (root / "runs" / ".gitkeep").exists()
        assert (root / "memory" / "team" / "note").exists()

    @pytest.mark.parametrize("gone", ["project", "everything"])
    @pytest.mark.parametrize("how", [attached, _adopted], ids=["attach", "adopt"])
    def test_one_without_its_project_file_is_told_what_brings_it_back_and_that_does(
        self, root: Path, gone: str, how: Callable[[Path], object]
    ) -> None:
        for path in root.iterdir():
            if path.name == PROJECT_FILE or (gone == "everything" and path.name != ".git"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for place, given in ((root, None), (root.parent, None), (root.parent.parent, str(root))):
            with stores_in(place) as stores, pytest.raises(BrokenFormat) as refused:
                open_memory(stores, given)
            assert "raddle store adopt" in refused.value.hint
        how(root.parent)
        assert (root / "memory" / "team" / "note").read_text() == "first\n"
        assert git("status", "--porcelain", cwd=root) == ""
        with stores_in(root.parent) as stores:
            assert open_memory(stores).project.project_id == "loom"

    def test_adopt_finds_one_without_its_project_file_from_within(self, root: Path) -> None:
        (root / PROJECT_FILE).unlink()
        with stores_in(root) as stores:
            plan = plan_adoption(stores)
            assert (plan.root, plan.is_needed) == (root, True)
            adopt(stores, plan)
        assert (root / PROJECT_FILE).exists()
