"""The demo's conversations about papercrane, lantern and moth: invoices, a deployer, a recipe parser.

Every person, project and number in them is made up.
"""

from __future__ import annotations

from raddle.apps.cli.demo_script import Agent, Bash, Edit, Read, Say, Story, Think, Together, User

EMOJI = Story(
    title="A family of three becomes a man with a question mark",
    project="papercrane",
    branch="fix/truncate",
    hours_ago=24 * 27,
    steps=(
        User(
            "In the customer list 👨‍👩‍👧 Hansen & Co turns into 👨� on narrow screens. What eats the family?"
        ),
        Read(
            "src/text/truncate.ts",
            "export const truncate = (text: string, max: number): string =>\n  text.length > max "
            "? text.slice(0, max - 1) + '…' : text;",
        ),
        Say(
            "`slice` counts UTF-16 units. The family is five code points joined by invisible "
            "joiners, eight units long; cut in "
            "the middle, half a surrogate pair is left over. `Intl.Segmenter` cuts at what "
            "people see as one character."
        ),
        Edit(
            "src/text/truncate.ts",
            "text.slice(0, max - 1) + '…'",
            "[...segments(text)].slice(0, max - 1).join('') + '…'",
        ),
        Bash(
            "npx vitest run text",
            " ✓ src/text/truncate.test.ts (7)\n   ✓ keeps a family together\n   ✓ keeps é as "
            "one, composed or not\n   ✓ keeps 🇳🇴 whole",
        ),
        Say("The family stays together now, and so do flags, skin tones and é. 👨‍👩‍👧"),
    ),
)

ROUNDING = Story(
    title="Invoice totals are off by one cent",
    project="papercrane",
    branch="fix/cents",
    hours_ago=24 * 18 + 5,
    steps=(
        User(
            "Invoice 2031-0117 shows 1,204.57 but the sum of its lines is 1,204.58. The "
            "accountant is not amused."
        ),
        Bash('node -e "console.log(1.005 * 100, Math.round(1.005 * 100) / 100)"', "100.49999999999999 1"),
        Think(
            "Floats for money, VAT rounded per line and again per total. Use integer cents, "
            "round once per rate."
        ),
        Say(
            "Money is kept in floats, and VAT is rounded on every line and then once more in the "
            "total. 1.005 × 100 is 100.49999999999999, so half a cent is lost now and then."
        ),
        Together(
            (
                Bash("grep -rn 'toFixed(2)' src | wc -l", "23"),
                Read(
                    "src/invoice/total.ts",
                    "export const total = (lines: Line[]) =>\n  lines.reduce((sum, l) => sum + "
                    "Number((l.net * (1 + l.vat)).toFixed(2)), 0);",
                ),
            )
        ),
        User("How big is the change if we keep cents as whole numbers everywhere?"),
        Say(
            "23 places, of which 19 only show a value. I'd add a type `Cents`, so that the "
            "compiler finds the other four for us, and round once per VAT rate, as the tax "
            "office wants it."
        ),
        Edit(
            "src/invoice/total.ts",
            "lines.reduce((sum, l) => sum + Number((l.net * (1 + l.vat)).toFixed(2)), 0)",
            "[...byRate(lines)].reduce((sum, [rate, net]) => sum + net + roundHalfEven(net * "
            "rate), 0 as Cents)",
        ),
        Bash(
            "npx tsc --noEmit",
            "src/invoice/credit.ts(31,9): error TS2322: Type 'number' is not assignable to type "
            "'Cents'.\nsrc/mail/reminder.ts(12,44): error TS2345: Argument of type 'number' is "
            "not assignable to parameter of type 'Cents'.",
            failed=True,
        ),
        Say("There are two the compiler caught: credit notes and reminders had the same bug. Mending both."),
        Bash(
            "npx tsc --noEmit && npx vitest run invoice",
            " ✓ src/invoice/total.test.ts (41)\n ✓ 2031-0117 adds up to 1,204.58",
        ),
        Say("Adds up. Credit notes and reminder mails were wrong in the same way and are right now too."),
    ),
)

DARK_MODE = Story(
    title="Dark mode flashes white on every page",
    project="papercrane",
    branch="feat/dark",
    hours_ago=24 * 9 + 1,
    is_damaged=True,
    steps=(
        User("Dark mode works, but every page flashes white before it turns dark. It hurts at night."),
        Think(
            "Theme is applied in useEffect, after first paint. Needs a blocking inline script in "
            "head, with a CSP hash."
        ),
        Say(
            "The theme is read in `useEffect`, which runs after the first paint. It has to be "
            "set before the body exists: three lines of inline script in the head, allowed by "
            "hash in our content security policy."
        ),
        Edit(
            "index.html",
            "<head>",
            "<head>\n    <script>document.documentElement.dataset.theme = localStorage.theme ?? "
            "'auto'</script>",
        ),
        Bash(
            "npm run build",
            "vite v7.0.2 building for production...\n✓ 412 modules transformed.\n✓ built in 3.08s",
        ),
        User("Still flashes in Safari.", after=4),
        Say(
            "Safari paints the canvas in the colour scheme of the document: it also wants `<meta "
            'name="color-scheme" content="dark light">`.'
        ),
        User("That was it. Is the laptop supposed to be this hot?"),
        Say("Not by us. Perhaps close the other forty tabs."),
        User("Good night, then.", after=1),
    ),
)

RETRIES = Story(
    title="Deploys hammer a server that is already down",
    project="lantern",
    branch="feat/backoff",
    hours_ago=24 * 4 + 7,
    steps=(
        User(
            "When the registry is down, every lantern on every laptop retries at once, each "
            "second, for ever. Be kinder."
        ),
        Read(
            "internal/push/retry.go",
            "for {\n\tif err = push(ctx, image); err == nil {\n\t\treturn nil\n\t}\n"
            "\ttime.Sleep(time.Second)\n}",
            18,
        ),
        Say(
            "This loop has no end, no growth and no spread. I'd make it exponential from 500 ms "
            "up to 30 s with full jitter, give "
            "up after two minutes, and not retry what will never work (401, 403, 404, 413)."
        ),
        User("Full jitter?"),
        Say(
            "Each wait is a random time between zero and the current ceiling. With plain "
            "exponential waits, laptops that failed together also come back together; drawn from "
            "the whole range they spread out evenly."
        ),
        Edit(
            "internal/push/retry.go",
            "\ttime.Sleep(time.Second)",
            "\tif !worthRetrying(err) || time.Since(began) > patience {\n\t\treturn "
            'fmt.Errorf("push %s: %w", image, err)\n\t}\n\tif err := sleep(ctx, '
            "rand.N(ceiling)); err != nil {\n\t\treturn err\n\t}\n\tceiling = min(ceiling*2, "
            "30*time.Second)",
        ),
        Bash(
            "go test ./internal/push/ -run Retry -v",
            "--- PASS: TestRetryGivesUp (0.00s)\n--- PASS: TestRetrySpreads (0.01s)\n--- PASS: "
            "TestRetryStopsWhenCancelled (0.00s)\nPASS",
        ),
        Say(
            "Kinder: at most 11 tries in two minutes instead of 120, never all at once, and "
            "Ctrl-C works while it waits."
        ),
    ),
)

RETRY_AFTER = Story(
    title="Honour Retry-After",
    project="lantern",
    branch="feat/backoff",
    hours_ago=24 * 2 + 4,
    goes_on_from=RETRIES.title,
    steps=(
        User("The registry people ask us to honour Retry-After as well."),
        Think("Two forms: seconds or an HTTP date. Cap it, or a bad header parks us for a day."),
        Say(
            "It comes in two forms, a number of seconds or a date. I'll take the longer of our "
            "own wait and theirs, but never more than the two minutes we are willing to wait at "
            "all."
        ),
        Edit(
            "internal/push/retry.go",
            "sleep(ctx, rand.N(ceiling))",
            "sleep(ctx, max(rand.N(ceiling), retryAfter(resp, time.Now())))",
        ),
        Bash("go vet ./... && go test ./internal/push/", "ok  \tlantern/internal/push\t0.212s"),
        Say(
            "Done. A `Retry-After: 86400` makes us give up with a message that says when to come "
            "back, instead of sleeping for a day."
        ),
    ),
)

RACE = Story(
    title="The progress bar jumps backwards",
    project="lantern",
    branch="main",
    hours_ago=24 * 1 + 5,
    steps=(
        User("The progress bar of `lantern push` sometimes jumps backwards. Cosmetic, but it looks broken."),
        Bash(
            "go test -race ./internal/bar/",
            "==================\nWARNING: DATA RACE\nWrite at 0x00c0000b4018 by goroutine 9:\n  "
            "lantern/internal/bar.(*Bar).Add()\n      internal/bar/bar.go:44\nPrevious read at "
            "0x00c0000b4018 by goroutine 7:\n  lantern/internal/bar.(*Bar).draw()\n      "
            "internal/bar/bar.go:61\n==================\n--- FAIL: TestBar (0.03s)\n    "
            "testing.go:1490: race detected during execution of test",
            failed=True,
        ),
        Say(
            "Not only cosmetic: eight uploads add to one counter without a lock, so bytes get "
            "lost and the drawn value may be an old one. An atomic counter is enough, nothing "
            "else is shared."
        ),
        Edit("internal/bar/bar.go", "\tb.done += n", "\tb.done.Add(n)"),
        Bash("go test -race -count 50 ./internal/bar/", "ok  \tlantern/internal/bar\t1.904s"),
        Say("Fifty runs under the race detector, silent. The bar only moves forward now, like time."),
    ),
)

REVIEW = Story(
    title="Is the release script safe to run twice?",
    project="lantern",
    branch="main",
    hours_ago=7,
    steps=(
        User(
            "Before I cut 1.4: is scripts/release.sh safe to run twice if it dies in the middle? "
            "Let somebody with fresh eyes look."
        ),
        Agent(
            "Review the release script",
            "Read scripts/release.sh of lantern. For each step say what happens if the script "
            "died right after it and is run again from the top. Look for steps that fail, repeat "
            "or overwrite. Change nothing.",
            (
                Read(
                    "scripts/release.sh",
                    'set -eu\nversion=$1\ngit tag "v$version"\ngo build -o dist/ ./...\nsha256sum '
                    'dist/* > dist/SUMS\ngit push origin "v$version"\ngh release create "v$version" '
                    "dist/*",
                ),
                Bash(
                    "git tag -l 'v1.4*'; gh release list --limit 2",
                    "v1.3.2  Latest  2031-02-11\nv1.3.1          2031-01-30",
                ),
                Say("Going through it step by step."),
            ),
            "Not safe. (1) `git tag` fails on the second run, so everything after it never "
            "happens. (2) `dist/` is not emptied: "
            "files of an older build end up in SUMS and in the release. (3) The tag is pushed "
            "before the release exists; in between, installers see a version without files.",
        ),
        Say(
            "Fresh eyes found three things, all real: a second run dies at `git tag`; an old "
            "`dist/` leaks into the release; and the tag "
            "is public before its files are. I'd build first into an empty folder, create the "
            "release as a draft, push the tag last, and let each step check whether it is done "
            "already."
        ),
        User("Do that."),
        Edit(
            "scripts/release.sh",
            'git tag "v$version"\ngo build -o dist/ ./...',
            "rm -rf dist && go build -o dist/ ./...\ngit rev-parse -q --verify "
            '"refs/tags/v$version" || git tag "v$version"',
        ),
        Bash("bash -n scripts/release.sh && shellcheck scripts/release.sh && echo clean", "clean"),
        Say("Safe to run twice now, or ten times. Cut away."),
    ),
)

PARSER = Story(
    title="The recipe parser never comes back from “1/ cup”",
    project="moth",
    branch="main",
    hours_ago=1.6,
    steps=(
        User("`echo '1/ cup flour' | moth parse` eats a whole core and never returns."),
        Bash("timeout 5 cargo run -q -- parse <<< '1/ cup flour'; echo $?", "124", failed=True),
        Read(
            "src/quantity.rs",
            "while !rest.is_empty() {\n    let (digits, tail) = take_digits(rest);\n    value = "
            "value * 10 + digits.parse().unwrap_or(0);\n    rest = tail;\n}",
            27,
        ),
        Think(
            "take_digits on ' cup' gives ('', ' cup'): no progress, the loop never ends. Must "
            "fail when nothing was taken."
        ),
        Say(
            "After the slash `take_digits` finds no digit, gives back the same rest, and the "
            "loop goes round with it for ever. A parser has to move forward or fail."
        ),
        Edit(
            "src/quantity.rs",
            "    let (digits, tail) = take_digits(rest);",
            "    let (digits, tail) = take_digits(rest);\n    if digits.is_empty() {\n        "
            "return Err(Bad::Fraction { at: whole.len() - rest.len() });\n    }",
        ),
        Bash(
            "cargo test -q",
            "running 58 tests\n..........................................................\ntest "
            "result: ok. 58 passed; 0 failed",
        ),
        User("And what does it say to the cook?"),
        Bash(
            "moth parse <<< '1/ cup flour'",
            "line 1: I know 1, but one over what? Write 1/2, or ½.",
            failed=True,
        ),
        Say(
            "“I know 1, but one over what? Write 1/2, or ½.” I also ran the fuzzer for a minute: "
            "no more hangs in 2.1 million inputs. 🧁"
        ),
    ),
)

STORIES = (EMOJI, ROUNDING, DARK_MODE, RETRIES, RETRY_AFTER, RACE, REVIEW, PARSER)
