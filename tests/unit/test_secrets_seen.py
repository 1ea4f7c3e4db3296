"""What looks like a secret is named by its kind, what only talks of one is not, and no text takes long."""

from __future__ import annotations

import json

import pytest

from raddle.actions.memory.secrets_seen import seen_secrets

# Put together here, so that no file of the repository looks as if it held one.
HEAD, BODY = "ey" + "JhbGciOiJIUzI1NiJ9", "ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0"
SEEN = [
    ("AK" + "IAIOSFODNN7EXAMPLE", "an AWS access key"),
    ("aws_secret_access_key = wJalr" + "XUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzzz", "a password"),
    ("-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE", "a private key"),
    ("-----BEGIN OPENSSH " + "PRIVATE KEY-----", "a private key"),
    ("-----BEGIN PGP " + "PRIVATE KEY BLOCK-----", "a private key"),
    ("gh" + "p_" + "a1B2" * 9, "a GitHub token"),
    ("gh" + "o_" + "a1B2" * 9, "a GitHub token"),
    ("github_" + "pat_" + "a1B2_" * 10, "a GitHub token"),
    ("gl" + "pat-" + "a1B2c" * 4, "a GitLab token"),
    ("sk" + "-" + "a1B2" * 8, "an API key"),
    ("sk" + "-ant-api03-" + "a1B2" * 8, "an API key"),
    ("sk" + "_live_" + "a1B2" * 6, "an API key"),
    ("AI" + "za" + "a1B2c" * 7, "a Google API key"),
    ("xox" + "b-1234567890-abc", "a Slack token"),
    ("np" + "m_" + "a1B2" * 9, "a package registry's token"),
    (f"{HEAD}.{BODY}.dozjgNryP4J3jVmNHl0w5N", "a JSON web token"),
    ("https://ada:" + "hunter22@example.org/x", "a password in a URL"),
    ("redis://:" + "hunter22@cache", "a password in a URL"),
    ("password=" + "hunter22", "a password"),
    ("PASSWORD = 'hunter22'", "a password"),
    ("api_key: a1b2c3d4e5", "a password"),
    ("export CLIENT_SECRET=" + "abcdefgh", "a password"),
    ('{"password": "hunter22"}', "a password"),
    (json.dumps({"text": json.dumps({"api-key": "a1b2c3d4"})}), "a password"),
]
NOT_SEEN = [
    "",
    "the password is kept in the keyring",
    "password: required",
    "password=$PASSWORD",
    "password=<yours>",
    "password={password}",
    "password=password",
    "password=user_password)",
    "password=os.environ['X']",
    "password = getpass()",
    "if password == other:",
    "secret: str",
    "token = None",
    "api_key=********",
    "sk-learn-pipeline-with-many-steps",
    "task-a1b2c3d4e5f6a7b8c9d0e1f2a3b4",
    "https://example.org:8080/x@y",
    "git@example.org:team/memory.git",
    "postgres://ada:$PASSWORD@db/x",
    "01M8PZKM3KMAB0SYRHJ485PAMY",
    "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c",
    "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
]


@pytest.mark.parametrize(("text", "kind"), SEEN, ids=[f"{kind}-{at}" for at, (_, kind) in enumerate(SEEN)])
def test_a_secret_is_named_by_its_kind(text: str, kind: str) -> None:
    assert kind in seen_secrets(f"see {text} there")
    assert kind in seen_secrets(text)
    assert all(text not in told for told in seen_secrets(text))


@pytest.mark.parametrize("text", NOT_SEEN)
def test_what_only_talks_of_one_is_none(text: str) -> None:
    assert seen_secrets(text) == []


def test_each_kind_is_told_once() -> None:
    assert seen_secrets(("password=" + "hunter22 ") * 3) == ["a password"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece",
    ["a", "-eyJ", "eyJ", "secret", "sk-", "password=", "a://b:", "-----BEGIN A ", "xoxb-", "password:a "],
)
def test_no_text_takes_long(piece: str) -> None:
    seen_secrets(piece * (1_000_000 // len(piece)))
