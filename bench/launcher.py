"""Starts one program and tells what it took; run by `timing` as a process of its own.

A process begins with the peak memory of the one that forked it. This one is small and imports next to
nothing, so that what is said of the program is the program's own (from some 10 MB up). Usage:
`launcher.py FD PROGRAM ARGUMENT…`; lines on FD: the pid, then wall, user, system, peak RSS, exit code.
"""

import os
import sys
import time


def main() -> None:
    """Start, wait, tell."""
    out, argv = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(out, False)
    before = time.perf_counter()
    try:
        pid = os.posix_spawnp(argv[0], argv, os.environ)
    except OSError as error:
        sys.exit(f"{argv[0]}: {error.strerror}")
    os.write(out, f"{pid}\n".encode())
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - before
    code = os.waitstatus_to_exitcode(status)
    took = f"{wall!r} {usage.ru_utime!r} {usage.ru_stime!r} {usage.ru_maxrss} {code}\n"
    os.write(out, took.encode())


if __name__ == "__main__":
    main()
