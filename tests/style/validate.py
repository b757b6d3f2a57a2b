#!/usr/bin/python3
"""validate.py PATH…: every JSON document of rlock's in these files, or in the files below these folders, fits docs/json.

A document is a line that begins as those of --json and of the event log do; other lines are not looked at. Run by the
bats suites when a file of tests is over (tests/cli/setup_suite.bash). Without a PATH: the schemas themselves, and
the golden files.
"""
import json
import os
import pathlib
import sys
import warnings

import jsonschema

TOP = pathlib.Path(__file__).resolve().parents[2]
BEGINS = (b'{"schema":', b'{"event":')
# The field that only this document has.
KINDS = {"change": "watch", "event": "event-log", "error": "error", "locks": "status", "runs": "history", "released": "force-unlock",
         "acquired_at": "acquire", "forgotten": "forget", "acl_rule": "doctor", "settings": "config", "waiters": "queue"}

# Debian 12 has no other way to resolve references; newer versions of jsonschema have, and warn.
warnings.simplefilter("ignore", DeprecationWarning)


def validators():
    """{kind: validator}"""
    schemas = {}
    for path in (TOP / "docs/json").glob("*.schema.json"):
        schemas[path.name] = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schemas[path.name])
    return {kind: jsonschema.Draft202012Validator(
        schemas[f"{kind}.schema.json"], resolver=jsonschema.RefResolver("", schemas[f"{kind}.schema.json"], store=schemas))
            for kind in KINDS.values()}


def faults_of(line, known):
    """What is wrong with one document, in words."""
    try:
        document = json.loads(line)
    except ValueError as error:
        return [f"it is no JSON: {error}"]
    kind = next((kind for field, kind in KINDS.items() if field in document), None)
    if kind is None:
        return ["it is none of the documents of docs/json"]
    return [f"{kind}.schema.json: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"
            for error in known[kind].iter_errors(document)]


def files(paths):
    for path in map(pathlib.Path, paths):
        if not path.is_dir():
            yield path
        for folder, _, names in os.walk(path):
            yield from (pathlib.Path(folder, name) for name in sorted(names))


def documents(paths):
    """(file, line number, line)"""
    for path in files(paths):
        if path.is_file() and not path.is_symlink() and os.access(path, os.R_OK):
            for number, line in enumerate(path.read_bytes().splitlines(), 1):
                if line.startswith(BEGINS):
                    yield path, number, line


def main():
    known = validators()
    paths = sys.argv[1:] or [TOP / "tests/cli/golden"]
    seen, faults = set(), 0
    for path, number, line in documents(paths):
        if line in seen:
            continue
        seen.add(line)
        for fault in faults_of(line, known):
            faults += 1
            print(f"{path}:{number}: {fault}; {line[:200].decode(errors='replace')}")
    print(f"{len(seen)} documents: {faults} faults")
    sys.exit(1 if faults else 0)


main()
