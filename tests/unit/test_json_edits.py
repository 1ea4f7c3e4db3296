"""JSON that a person laid out: what is put in goes in alone, and comes out again without a trace."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.adapters.agent_settings.json_edits import decoded, with_other_value, with_value, without
from raddle.model.errors import BrokenFormat

ENTRY = {"hooks": [{"type": "command", "command": "raddle hooks run x", "timeout": 30}]}

LAID_OUT = [
    "{}",
    "{}\n",
    '{"a": 1}',
    '{"a":1,"b":[1,2]}\n',
    '{\n  "a": 1\n}\n',
    '{\n\t"a": {\n\t\t"b": []\n\t}\n}',
    '{\r\n    "a": 1,\r\n    "b": [1,\r\n 2]\r\n}\r\n',
    '\n\n{ "text": "a // b /* c */ } ] \\" , ä東" }',
]
WITH_COMMENTS = [
    '{\n  // mine\n  "a": 1, // one, two\n  "b": 2 /* three, */\n  // the end\n}\n',
    '// top\n{\n  "a": 1 // last\n}\n// bottom\n',
    "{ /* empty */ }",
]


@pytest.mark.parametrize("text", [*LAID_OUT, *WITH_COMMENTS])
def test_what_is_put_in_and_taken_out_leaves_no_trace(text: str) -> None:
    plain = decoded(text, has_comments=True)
    more = with_value(text, ("hooks",), {"Stop": [ENTRY]})
    assert decoded(more, has_comments=True) == {**plain, "hooks": {"Stop": [ENTRY]}}
    assert all(comment in more for comment in re.findall(r"// \w+|/\*.*?\*/", text))
    less = without(more, ("hooks",))
    assert decoded(less, has_comments=True) == plain
    if "empty" not in text:
        assert less == text


def test_a_list_grows_as_it_is_laid_out() -> None:
    spread = '{\n  "Stop": [\n    {"x": 1}\n  ],\n  "z": 0\n}\n'
    more = with_value(spread, ("Stop", 0), {"y": 2})
    assert more == '{\n  "Stop": [\n    {"x": 1},\n    {\n      "y": 2\n    }\n  ],\n  "z": 0\n}\n'
    assert without(more, ("Stop", 1)) == spread
    assert without(more, ("Stop", 0)) == '{\n  "Stop": [\n    {\n      "y": 2\n    }\n  ],\n  "z": 0\n}\n'
    assert with_value('{"Stop": [1]}', ("Stop", 0), 2) == '{"Stop": [1, 2]}'
    assert with_value('{"Stop": []}', ("Stop", 0), 2) == '{"Stop": [\n  2\n]}'


def test_of_several_with_one_name_the_last_one_counts() -> None:
    text = '{"a": {"x": 1}, "a": {"y": 2}}'
    assert with_other_value(text, ("a", "y"), "new") == '{"a": {"x": 1}, "a": {"y": "new"}}'


@pytest.mark.parametrize("text", ["", "{", '{"a": 1,}', "{'a': 1}", '{"a": 1} x', "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(BrokenFormat):
        decoded(text, has_comments=True)


def test_comments_are_refused_where_the_agent_reads_none() -> None:
    with pytest.raises(BrokenFormat):
        decoded(WITH_COMMENTS[0])
    assert decoded('{"a": "// no comment"}') == decoded('{"a": "// no comment"}', has_comments=True)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    plain=st.dictionaries(st.text(max_size=4), _VALUES, max_size=4),
    indent=st.sampled_from([None, 0, 1, 2, "\t"]),
    value=_VALUES,
)
def test_any_json_takes_a_value_and_gives_it_back(
    plain: dict[str, object], indent: int | None, value: object
) -> None:
    plain.pop("hooks", None)
    text = json.dumps(plain, indent=indent, ensure_ascii=False)
    more = with_value(text, ("hooks",), value)
    assert decoded(more) == {**plain, "hooks": value}
    assert without(more, ("hooks",)) == text
