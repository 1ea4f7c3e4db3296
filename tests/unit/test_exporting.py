"""A thread on its way out: readable forms that hold their content in place, and the forms of other
programs.
"""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from raddle.actions.exporting.markdown import to_markdown
from raddle.actions.exporting.markdown_text import code, contained, fenced, html, inline
from raddle.actions.exporting.registry import FORMS, Export, form_named
from raddle.actions.exporting.text import to_text
from raddle.actions.exporting.transcript import transcript_of
from raddle.actions.exporting.wording import printable
from raddle.model.clock import format_time
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.codec import decode_file, encode_thread
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import Attachment, Message, ToolCall
from raddle.model.threads.quorum import decode_quorum
from raddle.model.threads.thread import Thread, merge
from raddle.model.threads.view import view_for
from tests.builders import NOON, SECOND, a_line, a_message, a_thread, an_author, texts

markdown = MarkdownIt("commonmark", {"html": True})


def tokens_of(text: str) -> list[Token]:
    """Every token, the inner ones too, as CommonMark reads the text."""
    found = []
    for token in markdown.parse(text):
        found += [token, *(token.children or [])]
    return found


def a_session() -> Thread:
    """A question, an answer with two calls (one without a result) and a sub-agent, and a second answer."""
    call = ToolCall(id="c1", tool_name="read_file", arguments_json={"path": "src/auth.rs"})
    lonely = ToolCall(id="c2", tool_name="bash", arguments_json="ls -l")
    thread = a_thread(
        a_message("m1", "Add error handling", author="Ada"),
        _reply(
            "m2", "I'll look.", "m1", 2, "assistant", tool_calls=(call, lonely), thinking="first the file"
        ),
        _reply("m3", "fn main() {\n```\n}", "m2", 3, "tool", tool_call_id="c1", tool_name="read_file"),
        _reply("m4", "Done.", "m3", 4, "assistant"),
        _reply("m5", "thanks", "m4", 5, "user"),
        _reply("s1", "sub task", "m2", 3, "user", is_sidechain=True, branch_id="s1"),
        _reply("s2", "sub answer", "s1", 4, "assistant", is_sidechain=True, branch_id="s1"),
        _reply("o1", "instead", "m1", 4, "assistant", branch_id="o1"),
        title="Fix *login*",
    )
    editor = Editor(thread, an_author())
    editor.start(workspace_root="/home/ada/app")
    editor.name_branch("o1", "the short way")
    editor.set_model("anthropic", "claude")
    editor.tag("auth")
    editor.write("git_remote_url", "github.com/ada/app")
    return thread


def _reply(name: str, content: str, parent_id: str, second: int, role: str, **fields: object) -> Message:
    given: dict[str, object] = {"branch_id": "m1", **fields}
    return a_message(
        name, content, parent_id=parent_id, role=role, ts=format_time(NOON + second * SECOND), **given
    )


class TestTranscript:
    def test_the_line_to_the_tip_comes_first_and_the_others_say_where_they_leave(self) -> None:
        sections = transcript_of(a_session()).sections
        assert [(s.number, s.name, s.after, s.is_lost) for s in sections] == [
            (1, "", 0, False),
            (2, "the short way", 1, False),
        ]
        assert [[t.number for t in s.turns] for s in sections] == [[1, 2, 3], [4]]
        assert sections[0].turns[0].forks == (2,)

    def test_what_one_side_says_in_pieces_is_one_turn(self) -> None:
        turn = transcript_of(a_session()).sections[0].turns[1]
        assert [exchange.message.id for exchange in turn.exchanges] == ["m2", "m4"]
        assert [[e.message.id for e in sub] for sub in turn.sub_agents] == [["s1", "s2"]]

    def test_a_path_counts_what_it_leaves_out(self) -> None:
        (section,) = transcript_of(a_session(), "m4").sections
        assert [(t.number, t.forks, t.hidden_forks) for t in section.turns] == [(1, (), 1), (2, (), 1)]

    def test_every_shown_turn_stands_in_it_once(self) -> None:
        thread = a_session()
        thread.join(a_thread(_reply("lost", "lost", "never", 6, "user"), a_message("again", "again")).whole())
        Editor(thread, an_author()).write("gone/m5", True)
        told = [
            message.id
            for section in transcript_of(thread).sections
            for turn in section.turns
            for exchange in (*turn.exchanges, *(e for sub in turn.sub_agents for e in sub))
            for message in (exchange.message, *exchange.results)
            if message is not None
        ]
        assert sorted(told) == sorted(m.id for m in thread.tree.shown())
        assert [s.is_lost for s in transcript_of(thread).sections].count(True) == 1

    def test_a_sub_agents_turns_without_a_place_are_told_too(self) -> None:
        lost = (
            _reply("s1", "sub", "never", 1, "user", is_sidechain=True),
            _reply("s2", "deeper", "s1", 2, "assistant", is_sidechain=True),
            _reply("s3", "deeper, too", "s1", 3, "assistant", is_sidechain=True, branch_id="s3"),
        )
        assert sum(len(s.turns) for s in transcript_of(a_thread(*lost)).sections) == 3

    def test_facts_are_only_what_is_known(self) -> None:
        assert [label for label, _ in transcript_of(a_session()).facts] == [
            "Thread",
            "Model",
            "Started",
            "Workspace",
            "Repository",
            "Tags",
        ]
        assert transcript_of(Thread(a_session().id)).title == a_session().id


class TestMarkdown:
    def test_it_reads_from_the_title_to_the_last_turn(self) -> None:
        lines = to_markdown(a_session()).decode().splitlines()
        assert lines[0] == "# Fix \\*login\\*"
        assert [line for line in lines if line.startswith("#")] == [
            "# Fix \\*login\\*",
            "## 1. User (Ada), 2026-11-30 12:00 UTC",
            "## 2. Assistant, 2026-11-30 12:00 UTC",
            "## 3. User, 2026-11-30 12:00 UTC",
            "# the short way: another answer to turn 1",
            "## 4. Assistant, 2026-11-30 12:00 UTC",
        ]
        assert "*Also answered in [line 2](#line-2).*" in lines

    def test_calls_are_folded_with_their_results(self) -> None:
        text = to_markdown(a_session()).decode()
        assert "<summary>Tool: <code>read_file</code> src/auth.rs</summary>" in text
        assert (
            '```json\n{\n  "path": "src/auth.rs"\n}\n```\n\nResult:\n\n````\nfn main() {\n```\n}\n````'
            in text
        )
        assert "<summary>Tool: <code>bash</code> ls -l</summary>" in text
        assert "*no result recorded*" in text
        assert text.count("<details>") == text.count("</details>") == 4

    def test_a_branch_is_exported_alone_and_says_so(self) -> None:
        text = to_markdown(a_session(), "o1").decode()
        assert "instead" in text
        assert "Done." not in text
        assert "*1 other answer left out.*" in text

    def test_notices_are_folded_erased_turns_named_and_attachments_listed(self) -> None:
        picture = Attachment(sha256="0" * 64, media_type="image/png", name="a_b.png", size=12345)
        thread = a_thread(
            a_message("n", "<env>", kind="notice"),
            _reply("m1", "look", "n", 1, "user", attachments=(picture,)),
            _reply("m2", "secret", "m1", 2, "assistant").purged(),
            _reply("m3", "summary of it all", "m2", 3, "user", kind="summary"),
            _reply("m4", "orphan", "m3", 4, "tool", tool_name="bash", tool_call_id="gone"),
        )
        text = to_markdown(thread).decode()
        assert "<summary>Context, 2026-11-30 12:00 UTC</summary>\n\n\\<env>" in text
        assert "*Attachment: a_b.png (image/png, 12,345 bytes)*" in text
        assert "*This turn was erased.*" in text
        assert "## 3. Summary of what came before, " in text
        assert "Result of <code>bash</code>, without its call" in text

    def test_an_export_of_the_view_has_nothing_of_the_owners_own(self) -> None:
        text = to_markdown(view_for(a_session(), viewer_is_owner=False)).decode()
        assert "/home/ada" not in text
        assert "github.com/ada/app" in text


HOSTILE = st.text(st.sampled_from("`~#<>-=!|.)*+_\\ \t\n\ra1x/&[]("), max_size=60)
LINES = st.lists(
    st.sampled_from(
        (
            *(
                "```",
                "````",
                "~~~",
                "   ```",
                "    ```",
                "- ```",
                "  ```",
                "1. a",
                "2) ```",
                "> ```",
                "- a",
                "> a",
            ),
            *("# a", "text", "", "---", "===", "<div>", "<!--", "-->", "</details>", "`a", "b`", "`` <b> ``"),
            *("\\`<b>`", "\t```", "```py", "``` `x", "<script>", "<https://x.example>", "    code", "a | b"),
            *("<?php", "[a]: <b"),
        )
    ),
    max_size=9,
).map("\n".join)


class TestContainment:
    @settings(max_examples=400)
    @given(HOSTILE | LINES)
    @example("```\nunclosed")
    @example("- item\n  ```\ncode\n```")
    @example("text\n2) ```\n   code\n   ```")
    @example("a ` b\nc ` <script> ` d")
    @example("\\` <b> `")
    @example("Assistant\n---------")
    @example("  ```\n   ```\n  ```")
    @example("Assistant\n    ```\n    ```\n---------")
    @example("text\n    ```\n    <b>\n    ````")
    @example("text\n    ~~~ <b>\n    ~~~")
    @example("\\<a> \\\\<a>")
    @example("<details>\n<summary>x")
    def test_no_text_reaches_past_its_end_or_becomes_html_or_a_turn(self, text: str) -> None:
        document = f"{contained(text)}\n\n## the next turn\n"
        found = tokens_of(document)
        opening, words, _ = markdown.parse(document)[-3:]
        assert (opening.tag, opening.level, words.content) == ("h2", 0, "the next turn")
        headings = [t.tag for t in found if t.type == "heading_open" and t.level == 0]
        assert [tag for tag in headings if tag in ("h1", "h2")] == ["h2"]
        assert [t.content for t in found if t.type in ("html_block", "html_inline")] == []

    @settings(max_examples=200)
    @given(HOSTILE | LINES)
    def test_a_fenced_text_is_one_block_of_code_that_says_it_all(self, text: str) -> None:
        tokens = markdown.parse(f"{fenced(text, 'json')}\n\nafter\n")
        lines = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
        assert (tokens[0].type, tokens[0].content) == ("fence", f"{lines}\n")
        assert tokens[2].content == "after"

    @settings(max_examples=200)
    @given(HOSTILE)
    def test_inline_text_is_words(self, text: str) -> None:
        found = [t for t in tokens_of(f"x{inline(text)}x") if t.type != "inline"]
        assert "".join(t.content for t in found) == f"x{' '.join(text.split())}x"
        assert {t.type for t in found} <= {"paragraph_open", "paragraph_close", "text", "text_special"}

    @settings(max_examples=200)
    @given(HOSTILE)
    def test_a_code_span_is_one_span(self, text: str) -> None:
        words = " ".join(text.split())
        spans = [t for t in tokens_of(f"x {code(text)} x") if t.type == "code_inline"]
        assert [t.content for t in spans] == ([words] if words else [])

    def test_good_markdown_is_left_as_it_is(self) -> None:
        text = (
            "Two ways:\n\n1. `a < b`\n2. see <https://x.example>\n\n   ```python\n   if a < b: pass\n   ```"
        )
        assert contained(text) == text
        assert contained("```html\n<b>\n# no heading\n```") == "```html\n<b>\n# no heading\n```"

    def test_headings_step_down(self) -> None:
        assert contained("# A\n###### F\n#no heading") == "### A\n###### F\n#no heading"

    def test_html_words_are_escaped(self) -> None:
        assert html("<b> & \n 'x'") == "&lt;b&gt; &amp; 'x'"


class TestText:
    def test_it_reads_on_a_terminal(self) -> None:
        assert to_text(a_session(), "m4").decode() == (
            "Fix *login*\n"
            "===========\n"
            "Thread      T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c\n"
            "Model       anthropic / claude\n"
            "Started     2026-11-30 12:00 UTC\n"
            "Workspace   /home/ada/app\n"
            "Repository  github.com/ada/app\n"
            "Tags        auth\n"
            "\n"
            "[1] User (Ada), 2026-11-30 12:00 UTC\n"
            "  Add error handling\n"
            "  (1 other answer left out)\n"
            "\n"
            "[2] Assistant, 2026-11-30 12:00 UTC\n"
            "  I'll look.\n"
            "  > read_file src/auth.rs\n"
            "      {\n"
            '        "path": "src/auth.rs"\n'
            "      }\n"
            "  <\n"
            "      fn main() {\n"
            "      ```\n"
            "      }\n"
            "  > bash ls -l\n"
            "  < no result recorded\n"
            "  Done.\n"
            "  sub-agent:\n"
            "    User\n"
            "      sub task\n"
            "    Assistant\n"
            "      sub answer\n"
            "  (1 other answer left out)\n"
        )

    def test_other_lines_attachments_and_what_is_missing_are_told(self) -> None:
        picture = Attachment(sha256="0" * 64, name="a.png", size=1)
        body = Attachment(sha256="1" * 64, media_type="text/plain", size=2_000_000, is_body=True)
        call = ToolCall(id="c1", tool_name="bash", arguments_json={"command": "ls"})
        thread = a_thread(
            a_message("m1", "look", attachments=(picture, body)),
            _reply("n", "<env>", "m1", 1, "user", kind="notice"),
            _reply("m2", "", "n", 2, "assistant", tool_calls=(call,)),
            _reply("m3", "no such file", "m2", 3, "tool", tool_call_id="c1", is_error=True),
            _reply("m4", "secret", "m3", 4, "assistant").purged(),
            _reply("m5", "orphan", "m4", 5, "tool", tool_call_id="gone"),
            _reply("m6", "go on", "m5", 6, "user"),
            _reply("o1", "other", "m1", 1, "user", branch_id="o1"),
            _reply("l1", "lost", "never", 1, "user", branch_id="l1"),
            a_message("r2", "from the top"),
        )
        lines = to_text(thread).decode().splitlines()
        for line in (
            "  + Attachment: a.png (1 byte)",
            "  + The whole text (text/plain, 2,000,000 bytes)",
            "  (also answered in line 4)",
            "  < (failed)",
            "      no such file",
            "  (erased)",
            "  < tool (its call is not here)",
            "Line 2: another beginning",
            "Line 3: lost and found (what it answers is not there)",
            "Line 4: another answer to turn 1",
        ):
            assert line in lines
        assert "<env>" not in "".join(lines)

    def test_no_control_code_of_a_transcript_reaches_the_terminal(self) -> None:
        thread = a_thread(a_message(content="a\x1b[2Jb\x07\x9b\x00\tc\r\nd\re"), title="\x1b]0;x\x07")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", to_text(thread).decode())
        assert printable("a\x1bb\tc\r\nd\re") == "a\ufffdb\tc\nd\ne"

    def test_no_line_that_somebody_said_looks_like_a_turn(self) -> None:
        text = to_text(a_thread(a_message(content="x\n[2] Assistant\ny"))).decode()
        assert [line for line in text.splitlines() if line.startswith("[")] == [
            "[1] User, 2026-11-30 12:00 UTC"
        ]


class TestForms:
    def test_json_is_the_thread_file(self) -> None:
        thread = a_session()
        assert form_named("json").export(thread, None) == encode_thread(thread)

    def test_json_of_a_branch_is_a_part_that_joins_back_without_a_trace(self) -> None:
        thread = a_session()
        part = decode_file(form_named("json").export(thread, "o1")).thread()
        assert texts(part.messages) == ["Add error handling", "instead"]
        assert merge(thread, part).whole() == thread.whole()

    def test_json_lines_is_one_shown_message_a_line(self) -> None:
        thread = a_session()
        Editor(thread, an_author()).write("gone/m5", True)
        lines = form_named("jsonl").export(thread, None).splitlines()
        known = {m["id"]: m for m in json.loads(encode_thread(thread))["conversation"]["messages"]}
        assert [json.loads(line) for line in lines] == [known[m.id] for m in thread.tree.shown()]
        assert [json.loads(line)["id"] for line in form_named("jsonl").export(thread, "o1").splitlines()] == [
            "m1",
            "o1",
        ]

    def test_loom_has_the_seeds_fields_and_the_path_to_the_tip(self) -> None:
        plain = json.loads(form_named("loom").export(a_session(), None))
        assert not {"stamps", "format", "drafts", "removed_messages", "source", "client_version"} & set(plain)
        assert [set(m) for m in plain["conversation"]["messages"]] == [
            {"role", "content"},
            {"role", "content", "tool_calls"},
            {"role", "content", "tool_call_id", "tool_name"},
            {"role", "content"},
            {"role", "content"},
        ]
        assert set(plain["metadata"]) == {"title", "tags", "is_pinned", "extra"}
        assert plain["agent_state"]["kind"] == "waiting_for_user_input"

    def test_loom_knows_four_roles_and_seven_states(self) -> None:
        thread = a_thread(a_message(role="critic", content="weak"))
        Editor(thread, an_author()).write("agent_state", {"kind": "dreaming", "retries": 3})
        plain = json.loads(form_named("loom").export(thread, None))
        assert plain["conversation"]["messages"] == [{"role": "user", "content": "[critic] weak"}]
        assert plain["agent_state"] == {
            "kind": "waiting_for_user_input",
            "retries": 0,
            "last_error": None,
            "pending_tool_calls": [],
        }

    def test_quorum_reads_back(self) -> None:
        thread = a_thread(*a_line("one", "two"), title="x")
        assert texts(decode_quorum(form_named("quorum").export(thread, None)).messages) == ["one", "two"]

    @pytest.mark.parametrize("name", list(FORMS))
    def test_every_form_takes_a_branch_an_empty_thread_and_refuses_an_unknown_leaf(self, name: str) -> None:
        form = form_named(name)
        assert b"instead" in form.export(a_session(), "o1")
        assert b"thanks" not in form.export(a_session(), "o1")
        assert isinstance(form.export(Thread(a_session().id), None), bytes)
        with pytest.raises(NotFound):
            form.export(a_session(), "nobody")

    @pytest.mark.parametrize("name", list(FORMS))
    def test_every_form_takes_a_leaf_among_a_sub_agents_turns(self, name: str) -> None:
        assert b"sub answer" in form_named(name).export(a_session(), "s2")

    @pytest.mark.parametrize("name", list(FORMS))
    def test_every_form_survives_words_that_no_encoder_takes(self, name: str) -> None:
        thread = a_thread(a_message(content="x"), title="a\0b")
        assert form_named(name).export(thread, None)

    def test_an_unknown_form_names_those_there_are(self) -> None:
        with pytest.raises(InvalidInput) as told:
            form_named("docx")
        assert "markdown" in told.value.hint


@pytest.mark.parametrize("export", [to_markdown, to_text])
def test_a_transcript_cannot_steer_the_terminal_that_shows_it(export: Export) -> None:
    said = export(a_thread(a_message("m1", "x \x1b]0;owned\x07 y \x9b31m"), title="\x1b[2J"), None).decode()
    assert not set(said) & {"\x1b", "\x07", "\x9b"}
    assert "owned" in said
