#!/usr/bin/env python3
"""first_impression.py RLOCK [FILTERED]: what somebody finds who meets rlock for the first time, with nothing but the program and the files
of the repository. Prints each point that is there and each that is missing, and fails if fewer than LEAST are there. FILTERED is
tests/supervision/filtered.cpp, built; without it the sandbox is missing.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests" / "harness"))
from terminal import Terminal  # noqa: E402

RLOCK = os.path.realpath(sys.argv[1])
FILTERED = sys.argv[2:3]
# The number that is there today: raise it when another point comes, and never lower it.
LEAST = 24
ESCAPE = "\x1b["
# Without man, less and configuration: as in a bare container.
BARE = {"PATH": "/nonexistent", "HOME": "/nonexistent", "TERM": "xterm"}


def said(*words, code=0, before=()):
    """What rlock prints on both outputs; empty if it ends with another exit code."""
    done = subprocess.run([*before, RLOCK, *words], capture_output=True, text=True, check=False, env=BARE, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr if done.returncode == code else ""


def text(path):
    return (TOP / path).read_text(encoding="utf-8") if (TOP / path).exists() else ""


def shown(*words):
    """What rlock prints on a terminal."""
    terminal = Terminal([RLOCK, *words], BARE)
    while terminal.take(60):
        pass
    os.waitpid(terminal.pid, 0)
    return terminal.shown


def commands():
    return re.findall(r"^  ([a-z][a-z-]*)  +\S", said("--help").split("\nConnection and")[0], re.MULTILINE)


def manual(section, page="rlock.1"):
    """A section of a manual page without its markup."""
    found = re.search(rf'^\.SH "?{section}"?\n(.*?)(?=^\.SH )', text(f"man/{page}"), re.MULTILINE | re.DOTALL)
    return re.sub(r"\\f.|\\", "", found[1]) if found else ""


def headings(words):
    return re.findall(r"^(\S[^\n]*):$", said(*words), re.MULTILINE)


def near(page, *patterns, lines=25):
    """Whether all patterns are in so many lines that follow each other."""
    rows = text(page).splitlines()
    return any(all(re.search(pattern, "\n".join(rows[start:start + lines])) for pattern in patterns) for start in range(len(rows)))


POINTS = {
    # The program, without its manual.
    "rlock lists its commands in groups": lambda: len(headings(["--help"])) >= 5,
    "a command lists its options in groups": lambda: len(headings(["run", "--help"])) >= 5,
    "rlock help exit-codes": lambda: all(re.search(rf"\b{code}\b", said("help", "exit-codes")) for code in (64, 69, 75, 76, 78, 124)),
    "rlock help 69: the meaning of an exit code": lambda: "server" in said("help", "69") and len(said("help", "69").splitlines()) < 40,
    "rlock help guarantees": lambda: "lease" in said("help", "guarantees"),
    "rlock help --man prints the manual where there is no man": lambda: "RLOCK-GUARANTEES(7)" in said("help", "--man", "guarantees"),
    "rlock help says where to ask and to report": lambda: all(re.search(r"(?i)\bbugs?\b", said(*words)) for words in (["help"], ["--help"])),
    "rlock run without more is answered by its short help": lambda: "--wait" in said("run", code=64),
    "rlock without more is answered by its short help": lambda: "Usage: rlock" in said(code=64),
    "headings of help are bold on a terminal": lambda: ESCAPE in shown("run", "--help"),
    "and plain text in a pipe": lambda: ESCAPE not in said("run", "--help") + said(code=64) + said("help"),
    "a sandbox that forbids sockets is named as the reason": lambda: FILTERED and "sandbox" in said(
        "run", "--url", "redis://127.0.0.1:1", "point", "--", "true", code=77, before=[*FILTERED, "EPERM", "socket", "--"]),
    # The manual.
    "rlock(1) says where to ask and to report: BUGS": lambda: "rlock doctor" in manual("BUGS"),
    "each option says since when it exists": lambda: "Option\tSince\t" in text("docs/options.tsv"),
    "a page for each command": lambda: all(text(f"man/rlock-{name}.1") for name in commands()),
    "JSON is described for users, and how it may grow": lambda: re.search(r"(?is)later\s+version.{1,40}fields", manual("JSON", "rlock-formats.7")),
    "each schema of JSON has an address and a title": lambda: all(
        json.loads(path.read_text()).get("$id") and json.loads(path.read_text()).get("title") for path in (TOP / "docs/json").glob("*.json")),
    # The repository.
    "README: install, verify, upgrade and uninstall are next to each other": lambda: near(
        "README.md", "(?i)install", r"verify\.sh", "(?i)upgrade", "(?i)uninstall|remove|purge"),
    "README: what the first command prints": lambda: near("README.md", r"(?m)^ {4}.*rlock run ", "(?m)^ {4}(rlock: |hello|token |web)", lines=12),
    "README: where to ask and to report": lambda: near("README.md", r"(?i)\b(ask|question)", "(?i)report|issue", lines=3),
    "SECURITY.md: versions, contact, time to the answer and to the disclosure": lambda: all(
        re.search(pattern, text("SECURITY.md")) for pattern in ("Supported versions", "private vulnerability report", "first answer", "disclosure")),
    "every file of a release can be verified": lambda: os.access(TOP / "packaging/verify.sh", os.X_OK) and "## The key" in text("docs/RELEASING.md"),
    "coding agents: a page for those that change rlock": lambda: "ctest" in text("AGENTS.md"),
    "coding agents: a skill for those that use it": lambda: "name: rlock" in text("packaging/examples/agents/rlock/SKILL.md"),
}


def main():
    there = 0
    for point, holds in POINTS.items():
        found = bool(holds())
        there += found
        print(f"{'there  ' if found else 'missing'}  {point}")
    print(f"{there} of {len(POINTS)} points, at least {LEAST}")
    sys.exit(0 if there >= LEAST else 1)


main()
