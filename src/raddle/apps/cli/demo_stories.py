"""The demo's conversations about tidepool, a service that keeps the readings of tide gauges.

Every person, project and number in them is made up.
"""

from __future__ import annotations

from raddle.apps.cli.demo_script import Bash, Compact, Edit, Read, Rewind, Say, Story, Think, Together, User

_AUTH = """def current_user(token: str, keys: KeySet) -> User:
    claims = decode(token, keys.newest)
    if claims["exp"] < time.time():
        raise Expired(claims["sub"])
    return users.get(claims["sub"])"""

_AUTH_FIXED = """def current_user(token: str, keys: KeySet) -> User:
    claims = decode(token, keys.by_id(header_of(token)["kid"]))
    if claims["exp"] + LEEWAY_SECONDS < time.time():
        raise Expired(claims["sub"])
    return users.get(claims["sub"])"""

LOGIN = Story(
    title="Some people are logged out every night at 02:00",
    project="tidepool",
    branch="fix/nightly-logout",
    hours_ago=24 * 34,
    steps=(
        User(
            "Some people are logged out every night at 02:00, others never. Can you find out "
            "why? Auth lives in tidepool/auth.py."
        ),
        Think(
            "Every night at the same hour smells of a scheduled job: key rotation, session "
            "cleanup. Look at both."
        ),
        Say("I'll look at the token check and at what runs at two."),
        Together(
            (
                Read("tidepool/auth.py", _AUTH, 41),
                Bash(
                    "crontab -l | grep -v '^#'",
                    "0 2 * * *  tidepool keys rotate --keep 2\n15 4 * * 0  tidepool vacuum",
                ),
            )
        ),
        Say(
            "There it is: `tidepool keys rotate` runs at 02:00, and `current_user` decodes with "
            "`keys.newest` only. "
            "Everyone whose token was signed with the key before that is thrown out, although "
            "the old key is still kept. "
            "People who logged in after the last rotation never notice."
        ),
        User("Ah. And the token says which key it was signed with?"),
        Say(
            "Yes, in its header: `kid`. While I'm there I'll allow half a minute of clock skew "
            "between the two app servers, they differ by 11 s."
        ),
        Edit("tidepool/auth.py", _AUTH, _AUTH_FIXED),
        Bash(
            "pytest tests/test_auth.py -q",
            "F.....                                                              [100%]\n"
            "FAILED tests/test_auth.py::test_unknown_key_is_refused - KeyError: 'k-2031'\n1 "
            "failed, 5 passed in 0.41s",
            failed=True,
        ),
        Say("An unknown `kid` must be a refusal, not a KeyError: somebody could send any header they like."),
        Edit(
            "tidepool/keys.py",
            "        return self._keys[kid]",
            "        try:\n            return self._keys[kid]\n        except KeyError:\n        "
            "    raise Refused('unknown key') from None",
        ),
        Bash(
            "pytest tests/test_auth.py -q",
            "......                                                              [100%]\n6 passed in 0.39s",
        ),
        Say(
            "Fixed and green. Tokens are now checked with the key that signed them, an unknown "
            "key is refused, and 30 s of "
            "clock skew are forgiven. Nobody is logged out at two any more as long as `--keep` "
            "covers the life of a token (12 h)."
        ),
    ),
)

FLAKY = Story(
    title="test_latest_reading fails one time in twenty",
    project="tidepool",
    branch="main",
    hours_ago=24 * 21 + 3,
    steps=(
        User("test_latest_reading fails about one time in twenty on CI. Please make it stop."),
        Bash(
            "for i in $(seq 20); do pytest -q tests/test_readings.py -k latest || break; done | tail -4",
            "E       assert 1.84 == 1.79\nE        +  where 1.84 = Reading(gauge='pier-3', "
            "level=1.84).level\n1 failed in 0.22s",
            failed=True,
        ),
        Say(
            "It fails here too, on the ninth run. The quick way is to retry it up to three times "
            "with `pytest-rerunfailures`. Shall I?"
        ),
        User("Yes, just add the retries."),
        Edit("pyproject.toml", 'addopts = "-ra"', 'addopts = "-ra --reruns 3"'),
        Say("Done: every failing test now gets three more chances."),
        Rewind(1),
        User(
            "No, no retries. If it is wrong one time in twenty for us, it is wrong one time in "
            "twenty for the harbour master. Find the cause.",
            after=11,
        ),
        Think(
            "Two readings with the same timestamp? `ORDER BY taken_at DESC LIMIT 1` leaves ties "
            "to the planner."
        ),
        Bash(
            "psql -c \"select id, taken_at, level from readings where gauge='pier-3' order by "
            'taken_at desc limit 3"',
            "  id  |       taken_at       | level\n------+----------------------+-------\n 8841 "
            "| 2031-03-02 04:10:00Z |  1.84\n 8842 | 2031-03-02 04:10:00Z |  1.79\n 8840 | "
            "2031-03-02 04:00:00Z |  1.71",
        ),
        Say(
            "You were right to insist. Two readings can carry the same minute, because the gauge "
            "sends a correction with the "
            "time of the reading it corrects. `ORDER BY taken_at DESC LIMIT 1` then gives "
            "whichever row comes first. "
            "The correction has the higher id, so the order has to be `taken_at DESC, id DESC`."
        ),
        Edit(
            "tidepool/readings.py",
            "ORDER BY taken_at DESC LIMIT 1",
            "ORDER BY taken_at DESC, id DESC LIMIT 1",
        ),
        Bash("pytest -q tests/test_readings.py --count 200", "200 passed in 31.02s"),
        Say("200 runs, no failure, and no retries. The harbour master gets the corrected level too. ✅"),
    ),
)

MIGRATION = Story(
    title="Add a datum column to 40 million readings",
    project="tidepool",
    branch="feat/datum",
    hours_ago=24 * 13 + 6,
    steps=(
        User(
            "We need a column `datum` (NOT NULL) on readings, which has 40 million rows. Last "
            "time a migration like this took the site down for eight minutes."
        ),
        Think(
            "Postgres: ADD COLUMN with a constant default is instant since 11. But the default "
            "depends on the gauge: backfill. NOT NULL scan takes an ACCESS EXCLUSIVE lock unless "
            "a validated CHECK exists."
        ),
        Say(
            "Then four steps, none of which holds a lock for longer than a moment:\n\n"
            "1. `ADD COLUMN datum text` with `SET lock_timeout = '2s'`, retried.\n"
            "2. Backfill in batches of 10,000 by id, committing each.\n"
            "3. `ADD CONSTRAINT … CHECK (datum IS NOT NULL) NOT VALID`, then `VALIDATE "
            "CONSTRAINT`, which lets writers through.\n"
            "4. `SET NOT NULL`, which now believes the constraint and scans nothing."
        ),
        User("Good. Write it, and try it on the copy.", after=6),
        Edit(
            "migrations/0042_datum.py",
            "",
            "def forward(db):\n    db.execute(\"SET lock_timeout = '2s'\")\n    "
            "db.execute('ALTER TABLE readings ADD COLUMN datum text')\n    for first in range(0, "
            "db.newest_id('readings'), 10_000):\n        db.execute(BACKFILL, first, first + "
            "10_000)\n        db.commit()",
        ),
        Bash(
            "time tidepool migrate --database copy 0042",
            "ERROR:  canceling statement due to lock timeout\nHINT:  a vacuum of readings has "
            "been running for 00:14:02\nreal    0m2.061s",
            failed=True,
        ),
        Say(
            "That is `lock_timeout` doing its job: an autovacuum holds the table, so we step "
            "back instead of queueing everyone behind us. I'll add a retry with a pause."
        ),
        Bash(
            "time tidepool migrate --database copy 0042 --retry 20",
            "0042: column added (attempt 3)\n0042: 40,118,232 rows in 4,012 batches\n0042: "
            "constraint validated\nreal    19m44.310s",
        ),
        Compact(
            "The person wants a NOT NULL column `datum` on readings (40 million rows) without "
            "downtime. Done so far: "
            "migrations/0042_datum.py adds it under a lock timeout, fills it in batches, "
            "validates a CHECK. It ran on the copy in "
            "20 minutes with the site's load replayed beside it. Open: production, and what to "
            "do with gauges of unknown datum."
        ),
        User("What about the six gauges where nobody knows the datum?", after=45),
        Say(
            "I would store 'unknown' rather than guess: a wrong datum moves every level by "
            "metres, and nobody would see it. The page can then say so."
        ),
        User("Agreed. Go."),
        Bash(
            "tidepool migrate --database production 0042 --retry 20",
            "0042: column added (attempt 1)\n0042: 40,131,006 rows in 4,014 batches\n0042: "
            "constraint validated\n0042: done, longest lock held 38 ms",
        ),
        Say("In production. The longest lock was held for 38 ms; the p99 of the site did not move. 🚀"),
    ),
)

STATION_NAMES = Story(
    title="Searching for 東京湾 finds nothing",
    project="tidepool",
    branch="fix/cjk-search",
    hours_ago=24 * 6 + 2,
    steps=(
        User("Searching for 東京湾 finds nothing, but there is a station 東京湾平均海面. `tokyo` works."),
        Bash("sqlite3 stations.db \"select name from names where names match '東京湾'\"", ""),
        Think(
            "unicode61 takes a run of CJK as one token, so only the full name matches. Cut into "
            "bigrams ourselves."
        ),
        Say(
            "The index takes a run of Japanese as one word: 東京湾平均海面 is a single token, and 東京湾 "
            "is only its beginning. "
            "I'll cut such runs into overlapping pairs (東京, 京湾, 湾平, …) both when we index and "
            "when we search; a query is then a phrase of pairs."
        ),
        Edit(
            "tidepool/words.py",
            "    return text.lower().split()",
            "    for run in RUNS.finditer(text.lower()):\n        yield from pairs(run[0]) if "
            "is_cjk(run[0]) else [run[0]]",
        ),
        Bash(
            "tidepool reindex && tidepool find 東京湾",
            "reindexed 18,204 names in 0.9 s\n東京湾平均海面   (T.P. 0 m)\n東京湾口フェリー  久里浜",
        ),
        User("すばらしい。서울 works too?"),
        Bash("tidepool find 서울", "서울 한강대교   수위표"),
        Say(
            "はい。서울 also finds its gauge, and mixed names such as `横浜Port` are found by either half. 🌊"
        ),
    ),
)

STORIES = (LOGIN, FLAKY, MIGRATION, STATION_NAMES)
