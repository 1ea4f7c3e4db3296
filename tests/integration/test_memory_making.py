"""A memory that is made: in a repository of its own, or on a branch of the code's, with nothing of the code touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raddle.adapters.memory_repo.repository import StoreRepository
from raddle.model.errors import ConflictError, InvalidInput, NetworkError, NotFound, RaddleError
from raddle.model.memory.marker import decode_marker
from raddle.model.memory.repo_layout import ATTRIBUTES_FILE, KEPT_FOLDERS, MARKER_FILE, PROJECT_FILE
from raddle.wiring.memory import open_memory
from raddle.wiring.memory_adopting import adopt, plan_adoption
from raddle.wiring.memory_making import StoreMade, attach_store, init_store, init_worktree
from raddle.wiring.memory_places import known_stores
from raddle.wiring.memory_status import store_status
from raddle.wiring.memory_syncing import sync_memory
from tests.memory_clones import git
from tests.memory_hosts import BRANCH, branches, commit, make_code, stores_in, untouchable, work_in_progress

NEW = sorted([PROJECT_FILE, ATTRIBUTES_FILE, *KEPT_FOLDERS])


def in_worktree(code: Path, **options: str) -> StoreMade:
    """A memory on a branch of the code's repository."""
    with stores_in(code) as stores:
        return init_worktree(stores, "loom", worktree_repo=str(code), **options)


def on_own(workspace: Path, **options: str) -> StoreMade:
    """A memory in a repository of its own."""
    with stores_in(workspace) as stores:
        return init_store(stores, "loom", **options)


def committed(root: Path) -> list[str]:
    """The files of a store's newest commit."""
    return sorted(git("ls-tree", "-r", "--name-only", "HEAD", cwd=root).splitlines())


class TestOfItsOwn:
    def test_it_is_a_repository_on_main_with_its_first_commit(self, tmp_path: Path) -> None:
        made = on_own(tmp_path)
        assert (made.root, made.done, made.mode, made.branch) == (tmp_path / BRANCH, "made", "repo", "main")
        assert committed(made.root) == NEW
        assert git("status", "--porcelain", cwd=made.root) == ""
        assert git("log", "--format=%P", cwd=made.root).strip() == ""

    def test_it_is_found_from_where_it_was_made(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        (code / "inner").mkdir()
        made = on_own(code / "inner")
        assert (made.marker, made.is_marker_new) == (code / MARKER_FILE, True)
        plain = on_own(tmp_path)
        for place, root in ((code, made.root), (code / "inner", made.root), (tmp_path, plain.root)):
            with stores_in(place) as stores:
                assert open_memory(stores).root == root
                assert attach_store(stores).done == "there"

    def test_at_a_place_that_a_person_named_it_is_said_how_it_is_found(self, tmp_path: Path) -> None:
        made = on_own(tmp_path, store=str(tmp_path / "place"))
        assert "--host-repo" in made.notes[0]
        assert not (tmp_path / MARKER_FILE).exists()
        with stores_in(tmp_path) as stores:
            plan = plan_adoption(stores, str(made.root), host_repo=str(tmp_path))
            assert "+  path: ./place" in plan.diff
            adopt(stores, plan)
            assert open_memory(stores).root == made.root

    def test_it_opens_and_this_machine_knows_it(self, tmp_path: Path) -> None:
        made = on_own(tmp_path)
        with stores_in(made.root / "runs") as stores:
            assert open_memory(stores).project.project_id == "loom"
            assert known_stores(stores.paths) == [made.root]

    def test_a_store_that_is_there_is_not_written_over(self, tmp_path: Path) -> None:
        made = on_own(tmp_path)
        (made.root / "memory" / "note").write_text("kept")
        with pytest.raises(ConflictError, match="holds the memory of loom already"):
            on_own(tmp_path)
        assert (made.root / "memory" / "note").read_text() == "kept"

    def test_a_folder_with_files_of_the_persons_stays_as_it_is(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        work_in_progress(code)
        before = untouchable(code)
        for place in (".", str(code), "../code"):
            with pytest.raises(ConflictError, match="not empty"):
                on_own(code, store=str(code / place))
        assert untouchable(code) == before

    def test_a_relative_place_beside_the_code_commits_nothing_of_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        code = make_code(tmp_path / "code")
        work_in_progress(code)
        before = untouchable(code)
        monkeypatch.chdir(code)
        made = on_own(code, store=f"./{BRANCH}")
        assert untouchable(code) == before
        assert committed(made.root) == NEW
        git("add", "-A", cwd=code)
        assert BRANCH not in git("ls-files", cwd=code)

    def test_a_place_in_another_store_is_refused(self, tmp_path: Path) -> None:
        outer = on_own(tmp_path).root
        with pytest.raises(InvalidInput, match="lies in the store"):
            on_own(tmp_path, store=str(outer / "memory" / "new"))

    def test_an_empty_folder_is_as_good_as_none(self, tmp_path: Path) -> None:
        (tmp_path / "place").mkdir()
        assert committed(on_own(tmp_path, store=str(tmp_path / "place")).root) == NEW

    def test_the_code_gets_a_marker_where_it_is_named(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        (code / "inner").mkdir()
        made = on_own(code, host_repo=str(code / "inner"), store=str(tmp_path / "memory"))
        assert made.marker == code / MARKER_FILE
        assert decode_marker(made.marker.read_bytes()).store.path == "../memory"
        with stores_in(code / "inner") as stores:
            assert open_memory(stores).root == tmp_path / "memory"

    def test_the_marker_lies_beside_the_nearest_agents_md(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        (code / "packages" / "a" / "src").mkdir(parents=True)
        (code / "packages" / "a" / "AGENTS.md").write_text("# a\n")
        made = in_worktree(code / "packages" / "a" / "src")
        assert made.marker == code / "packages" / "a" / MARKER_FILE
        assert made.root == code / "packages" / "a" / BRANCH
        assert "raddle-store" not in git("status", "--porcelain", "-uall", cwd=code)

    @pytest.mark.parametrize(
        ("settings", "of"),
        [
            (("commit.gpgsign", "true"), "signing"),
            (("core.hooksPath", "hooks"), "hooks"),
            (("core.excludesFile", "ignore"), "ignored"),
            (("core.autocrlf", "true"), "line ends"),
            (("init.defaultBranch", "trunk"), "branch"),
            (("user.useConfigOnly", "true"), "identity"),
            (("log.showSignature", "true"), "signatures"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_the_persons_own_settings_do_not_get_in_its_way(
        self, tmp_path: Path, home: Path, settings: tuple[str, str], of: str
    ) -> None:
        (home / "hooks").mkdir()
        for hook in ("pre-commit", "commit-msg", "post-checkout", "reference-transaction"):
            (home / "hooks" / hook).write_text("#!/bin/sh\nexit 1\n")
            (home / "hooks" / hook).chmod(0o755)
        (home / "ignore").write_text("build/\n*.json\nruns\n.gitkeep\n")
        name, value = settings
        git(
            "config",
            "--global",
            name,
            str(home / value) if name.startswith("core.") and of != "line ends" else value,
            cwd=home,
        )
        git("config", "--global", "gpg.program", "/bin/false", cwd=home)
        made = on_own(tmp_path, store=str(tmp_path / of))
        assert committed(made.root) == NEW
        assert made.branch == "main"
        assert StoreRepository(made.root, made.root / ".git" / "raddle").branch() == "main"


class TestOnABranchOfTheCode:
    def test_nothing_of_the_code_is_touched(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        work_in_progress(code)
        before = untouchable(code)
        made = in_worktree(code)
        (code / MARKER_FILE).unlink()
        assert untouchable(code) == before
        assert (made.root, made.mode, made.branch) == (code / BRANCH, "worktree", BRANCH)

    def test_the_branch_shares_no_commit_with_the_code(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        made = in_worktree(code)
        assert committed(made.root) == NEW
        assert git("log", "--format=%P", BRANCH, "--", cwd=code).strip() == ""
        assert git("status", "--porcelain", cwd=made.root) == ""

    def test_the_code_takes_no_notice_of_its_folder(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        made = in_worktree(code)
        assert git("status", "--porcelain", cwd=code) == f"?? {MARKER_FILE}\n"
        git("add", "-A", cwd=code)
        assert git("diff", "--cached", "--name-only", cwd=code) == f"{MARKER_FILE}\n"
        assert not (code / ".gitignore").exists()
        assert made.excluded == code / ".git" / "info" / "exclude"

    def test_a_folder_name_with_signs_of_patterns_is_left_out_by_itself(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        in_worktree(code, store=str(code / "[mem] *"))
        (code / "m").mkdir()
        (code / "m" / "x").write_text("of the code")
        git("add", "-A", cwd=code)
        assert git("diff", "--cached", "--name-only", cwd=code).splitlines() == [MARKER_FILE, "m/x"]

    def test_a_gitignore_that_takes_it_in_again_is_told_of(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        commit(code, ".gitignore", "!/raddle-store/\n")
        assert "gitignore" in in_worktree(code).notes[0]

    def test_a_subfolder_of_the_code_names_it_as_well(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        (code / "a" / "b").mkdir(parents=True)
        made = in_worktree(code / "a" / "b")
        assert (made.root, made.marker) == (code / BRANCH, code / MARKER_FILE)

    def test_another_working_tree_of_the_code_names_it_as_well(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        git("worktree", "add", "--quiet", "-b", "feature", str(tmp_path / "second"), cwd=code)
        before = untouchable(code)
        made = in_worktree(tmp_path / "second")
        assert made.root == tmp_path / "second" / BRANCH
        assert untouchable(code) == before
        assert git("status", "--porcelain", cwd=tmp_path / "second") == f"?? {MARKER_FILE}\n"

    def test_a_bare_repository_may_hold_it(self, tmp_path: Path) -> None:
        make_code(tmp_path / "code", hub=tmp_path / "hub.git")
        with stores_in(tmp_path) as stores:
            made = init_worktree(stores, "loom", worktree_repo=str(tmp_path / "hub.git"))
        assert (made.root, made.marker) == (tmp_path / BRANCH, None)
        assert committed(made.root) == NEW

    def test_a_repository_without_a_commit_may_hold_it(self, tmp_path: Path) -> None:
        git("init", "--quiet", "--initial-branch=main", str(tmp_path), cwd=tmp_path)
        made = in_worktree(tmp_path)
        assert committed(made.root) == NEW
        assert git("symbolic-ref", "HEAD", cwd=tmp_path) == "refs/heads/main\n"

    def test_a_sparse_repository_holds_it_whole(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        (code / "kept").mkdir()
        commit(code, "kept/x", "x")
        git("sparse-checkout", "init", "--cone", cwd=code)
        git("sparse-checkout", "set", "kept", cwd=code)
        made = in_worktree(code)
        assert git("status", "--porcelain", cwd=made.root) == ""
        assert "S " not in git("ls-files", "-t", cwd=made.root)

    def test_a_folder_that_was_deleted_is_made_again_from_the_branch(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        first = in_worktree(code)
        head = git("rev-parse", BRANCH, cwd=code)
        git("worktree", "list", cwd=code)
        _remove(first.root)
        again = in_worktree(code)
        assert again.done == "attached"
        assert git("rev-parse", "HEAD", cwd=again.root) == head
        assert committed(again.root) == NEW

    def test_a_deleted_folder_may_come_back_elsewhere(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        _remove(in_worktree(code).root)
        again = in_worktree(code, store=str(tmp_path / "elsewhere"))
        assert (again.root / PROJECT_FILE).exists()
        assert decode_marker((code / MARKER_FILE).read_bytes()).store.path == "../elsewhere"

    def test_what_only_a_deleted_folder_named_is_kept(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        root = in_worktree(code).root
        git("checkout", "--quiet", "--detach", cwd=root)
        commit(root, "memory/lost", "nearly")
        lost = git("rev-parse", "HEAD", cwd=root).strip()
        _remove(root)
        in_worktree(code)
        assert lost in git("for-each-ref", "refs/raddle/rescue/", "--format=%(objectname)", cwd=code)

    def test_a_locked_registration_is_not_let_go_of(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        root = in_worktree(code).root
        git("worktree", "lock", str(root), cwd=code)
        _remove(root)
        with pytest.raises(ConflictError, match="locked"):
            in_worktree(code)

    def test_a_branch_of_the_code_is_not_taken_for_a_store(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        git("branch", "other", cwd=code)
        before = untouchable(code)
        with pytest.raises(ConflictError, match="holds no store"):
            in_worktree(code, branch="other")
        with pytest.raises(ConflictError, match="checked out at"):
            in_worktree(code, branch="main")
        assert untouchable(code) == before

    def test_the_memory_of_another_project_is_not_taken(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        _remove(in_worktree(code).root)
        with stores_in(code) as stores, pytest.raises(ConflictError, match="memory of loom already"):
            init_worktree(stores, "other", worktree_repo=str(code))

    def test_a_second_working_tree_of_the_branch_is_refused(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        in_worktree(code)
        with pytest.raises(ConflictError, match="already"):
            in_worktree(code, store=str(tmp_path / "elsewhere"))
        assert not (tmp_path / "elsewhere").exists()

    @pytest.mark.parametrize("place", [".git/store", ".git", "a/.GIT/b"])
    def test_gits_own_folder_is_no_place_for_it(self, tmp_path: Path, place: str) -> None:
        code = make_code(tmp_path / "code")
        with pytest.raises((InvalidInput, ConflictError)):
            in_worktree(code, store=str(code / place))
        assert branches(code) == ["main"]

    def test_a_place_that_cannot_be_made_leaves_no_branch(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        for place in ("/proc/x", str(code / ("n" * 300))):
            with pytest.raises(RaddleError):
                in_worktree(code, store=place)
            with pytest.raises(RaddleError):
                on_own(code, store=place)
        assert branches(code) == ["main"]
        assert git("status", "--porcelain", cwd=code) == ""

    def test_hooks_of_the_code_do_not_run(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        hooks = code / ".git" / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in ("post-checkout", "pre-commit", "reference-transaction", "post-index-change"):
            (hooks / name).write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\nexit 1\n")
            (hooks / name).chmod(0o755)
        in_worktree(code)
        assert not (tmp_path / "ran").exists()

    def test_no_repository_is_a_refusal_that_says_what_to_do(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound) as refused:
            in_worktree(tmp_path)
        assert "git init" in refused.value.hint

    @pytest.mark.parametrize("name", ["-x", "a..b", "HEAD", "refs/heads/x", "a b", "a\nb"])
    def test_a_branch_that_git_could_misread_is_refused(self, tmp_path: Path, name: str) -> None:
        code = make_code(tmp_path / "code")
        with pytest.raises(InvalidInput):
            in_worktree(code, branch=name)


class TestTheMarkerThatIsThere:
    def test_comments_and_unknown_fields_stay(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        in_worktree(code)
        marker = code / MARKER_FILE
        marker.write_text(
            "# ours, do not touch\nteam: loom\n" + marker.read_text().replace("./raddle-store", "./old")
        )
        _remove(code / BRANCH)
        in_worktree(code)
        assert marker.read_text().startswith("# ours, do not touch\nteam: loom\n")
        assert decode_marker(marker.read_bytes()).store.path == "./raddle-store"

    def test_a_marker_of_another_store_is_not_written_over(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        text = "schema_version: 1\nstore:\n  mode: repo\n  path: ./m\n  url: https://example.org/m.git\n"
        (code / MARKER_FILE).write_text(text)
        with pytest.raises(ConflictError, match="another store"):
            in_worktree(code)
        assert (code / MARKER_FILE).read_text() == text
        assert branches(code) == ["main"]

    def test_a_marker_that_cannot_be_read_stops_all_of_it(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        (code / MARKER_FILE).symlink_to("/etc/passwd")
        with pytest.raises(InvalidInput, match="is a link"):
            in_worktree(code)
        assert branches(code) == ["main"]

    def test_it_is_as_readable_as_the_code(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code")
        code.chmod(0o755)
        in_worktree(code)
        assert (code / MARKER_FILE).stat().st_mode & 0o777 == 0o644


class TestABranchThatIsElsewhere:
    def test_one_that_the_remote_has_is_taken(self, tmp_path: Path) -> None:
        hub = tmp_path / "hub.git"
        code = make_code(tmp_path / "code", hub=hub)
        root = in_worktree(code).root
        git("push", "--quiet", "origin", BRANCH, cwd=root)
        git("clone", "--quiet", str(hub), str(tmp_path / "second"), cwd=tmp_path)
        git("update-ref", "-d", f"refs/remotes/origin/{BRANCH}", cwd=tmp_path / "second")
        made = in_worktree(tmp_path / "second")
        assert made.done == "attached"
        assert git("rev-parse", "HEAD", cwd=made.root) == git("rev-parse", "HEAD", cwd=root)

    def test_a_remote_that_cannot_be_asked_is_no_remote_without_it(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code", hub=tmp_path / "hub.git")
        (tmp_path / "hub.git").rename(tmp_path / "away.git")
        before = untouchable(code)
        with pytest.raises(NetworkError, match="cannot be asked"):
            in_worktree(code)
        assert untouchable(code) == before
        assert branches(code) == ["main"]
        assert not (code / BRANCH).exists()

    def test_neither_is_one_that_may_not_be_asked(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code", hub=tmp_path / "hub.git")
        with (
            stores_in(code, is_offline=True) as stores,
            pytest.raises(NetworkError, match="ask the network for nothing"),
        ):
            init_worktree(stores, "loom", worktree_repo=str(code))

    def test_what_the_remote_was_once_known_to_have_is_enough(self, tmp_path: Path) -> None:
        hub = tmp_path / "hub.git"
        root = in_worktree(make_code(tmp_path / "code", hub=hub)).root
        git("push", "--quiet", "origin", BRANCH, cwd=root)
        git("clone", "--quiet", str(hub), str(tmp_path / "second"), cwd=tmp_path)
        hub.rename(tmp_path / "away.git")
        assert in_worktree(tmp_path / "second").done == "attached"

    def test_several_remotes_without_an_origin_are_not_guessed_between(self, tmp_path: Path) -> None:
        code = make_code(tmp_path / "code", hub=tmp_path / "hub.git")
        git("remote", "rename", "origin", "one", cwd=code)
        git("remote", "add", "two", str(tmp_path / "hub.git"), cwd=code)
        with pytest.raises(NotFound, match="origin"):
            in_worktree(code)


def test_an_attach_that_died_before_the_files_were_there_is_finished_by_the_next(tmp_path: Path) -> None:
    code = make_code(tmp_path / "code")
    root = in_worktree(code).root
    for file in (root / PROJECT_FILE, root / "memory" / ".gitkeep"):
        file.unlink()
    with stores_in(code) as stores:
        assert attach_store(stores).done == "attached"
    assert git("status", "--porcelain", cwd=root) == ""


def _remove(root: Path) -> None:
    """As a person does who knows nothing of git."""
    import shutil

    shutil.rmtree(root)


UNUSUAL = {
    "a line end": b"a\nb",
    "line ends at its end": b"ab\n\n",
    "a return": b"a\r",
    "spaces around": b" a ",
    "no text": b"caf\xe9",
    "a dash": b"-a",
    "quotes": b"a\"'\\t",
    "signs of patterns": b"[a]*?!#",
}


@pytest.mark.parametrize("name", UNUSUAL.values(), ids=UNUSUAL)
def test_code_in_a_folder_of_any_name_has_its_memory(tmp_path: Path, name: bytes) -> None:
    code = make_code(tmp_path / os.fsdecode(name) / os.fsdecode(name))
    made = in_worktree(code)
    assert made.root == code / BRANCH
    assert git("status", "--porcelain", cwd=code) == f"?? {MARKER_FILE}\n"
    for _ in range(2):
        with stores_in(code) as stores:
            assert open_memory(stores).root == made.root
            assert attach_store(stores).root == made.root
            assert store_status(open_memory(stores)).apart == ""
            assert sync_memory(open_memory(stores)).state == "no_remote"
        (made.root / ".git").unlink()
        with stores_in(code) as stores:
            assert attach_store(stores).done == "attached"


@pytest.mark.parametrize("name", UNUSUAL.values(), ids=UNUSUAL)
def test_a_store_of_its_own_in_a_folder_of_any_name_works(tmp_path: Path, name: bytes) -> None:
    code = make_code(tmp_path / "code")
    alone = on_own(code, store=str(code / os.fsdecode(name)))
    assert git("status", "--porcelain", cwd=code) == ""
    with stores_in(alone.root) as stores:
        assert sync_memory(open_memory(stores)).state == "no_remote"
        assert known_stores(stores.paths) == [alone.root]


@pytest.mark.parametrize("name", ["a line end", "a return", "no text", "quotes"])
def test_a_folder_that_a_marker_cannot_name_is_refused_for_that(tmp_path: Path, name: str) -> None:
    code = make_code(tmp_path / "code")
    with pytest.raises(InvalidInput, match="cannot be a store's folder"):
        in_worktree(code, store=str(code / os.fsdecode(UNUSUAL[name])))
    assert branches(code) == ["main"]


@pytest.mark.parametrize("name", ["spaces around", "a dash", "signs of patterns"])
def test_a_folder_that_a_marker_can_name_is_found_by_it(tmp_path: Path, name: str) -> None:
    code = make_code(tmp_path / "code")
    made = in_worktree(code, store=str(code / os.fsdecode(UNUSUAL[name])))
    with stores_in(code) as stores:
        assert open_memory(stores).root == made.root
    assert git("status", "--porcelain", cwd=code) == f"?? {MARKER_FILE}\n"
