#!/usr/bin/python3
"""tidy.py BUILD [--changed]: clang-tidy 14 with the tree's .clang-tidy over src, as BUILD/compile_commands.json compiles it: several files at once in a
unity build, which takes a quarter of the time.

Other versions know other checks, and see other things in the same ones: without this one the test is skipped.
A file that passed is not looked at again as long as it, what it includes of the tree, its flags and .clang-tidy stay. --changed: only files
that differ from the branch main, or on it from the commit before, and those that include one.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import sys

from tree import INCLUDE, TOP, needs, output, read

PROGRAM = "clang-tidy-14"
# This clang demands its leave for -ftrivial-auto-var-init=zero; later ones and gcc do not.
FLAGS = ["-w", "-enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang"]


def reach(path, seen):
    """The file and all of the tree that it includes; a unity file includes absolute paths."""
    if path in seen:
        return seen
    seen.add(path)
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        for folder in (TOP / "src", path.parent):
            if (folder / name).is_file():
                reach((folder / name).resolve(), seen)
    return seen


def stamp(entry):
    state = hashlib.sha256((entry.get("command") or shlex.join(entry["arguments"])).encode())
    state.update(read(".clang-tidy").encode())
    for path in sorted(reach(pathlib.Path(entry["file"]).resolve(), set())):
        state.update(str(path).encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


def changed():
    """The files that differ from the commit on which this work began; None if git does not know it: then all do."""
    head = git("rev-parse", "HEAD")
    bases = [git("merge-base", "HEAD", name) for name in ("origin/HEAD", "origin/main", "main")]
    base = next((base for base in bases if base and base != head), None) or git("rev-parse", "--verify", "HEAD~1")
    return {TOP / name for name in git("diff", "--name-only", base).splitlines()} if base else None


def git(*words):
    said, _, code = output("git", "-C", str(TOP), *words)
    return said.strip() if code == 0 else ""


def check(build, entry, mark):
    """What clang-tidy has to say against one file; empty when nothing."""
    if mark.exists():
        return ""
    # Warnings are the compiler's business, and its flags are gcc's.
    said, errors, code = output(PROGRAM, "-p", build, "--quiet", *("--extra-arg=" + flag for flag in FLAGS), entry["file"])
    if code == 0:
        mark.touch()
        return ""
    return (said or errors).replace(f"{TOP}/", "")


def main():
    needs(PROGRAM)
    build = os.path.abspath(sys.argv[1])
    passed = pathlib.Path(build) / "tests/style/passed"
    passed.mkdir(parents=True, exist_ok=True)
    with open(pathlib.Path(build) / "compile_commands.json", encoding="utf-8") as file:
        entries = {entry["file"]: entry for entry in json.load(file)}
    ours = re.compile(f"{re.escape(str(TOP))}/src/|{re.escape(build)}/src/.*/Unity/")
    entries = [entry for name, entry in sorted(entries.items()) if ours.match(name)]
    known = len(entries)
    new = changed() if sys.argv[2:] == ["--changed"] else None
    if new is not None and TOP / ".clang-tidy" not in new:
        entries = [entry for entry in entries if new & reach(pathlib.Path(entry["file"]).resolve(), set())]
    marks = [passed / stamp(entry) for entry in entries]
    if len(entries) == known:
        for old in set(passed.iterdir()) - set(marks):
            old.unlink()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(lambda entry, mark: check(build, entry, mark), entries, marks))
    faults = [answer for answer in answers if answer]
    print(*faults, sep="\n")
    print(f"{len(entries)} of {known} files: {len(faults)} with faults")
    sys.exit(1 if faults or not known else 0)


main()
