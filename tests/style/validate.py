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
# The first document that has all of these fields.
KINDS = {"broken": "force-unlock", "error": "error", "locks": "status", "runs": "history", "forgotten": "forget", "acl_rule": "doctor",
         "settings": "config", "waiters": "queue", "version": "version", "slot": "acquire", "t_ns": "event-log", "time": "watch",
         "left_ms": "renew", "event": "release"}

# Debian 12 has no other way to resolve references; newer versions of jsonschema have, and warn.
warnings.simplefilter("ignore", DeprecationWarning)


def strict(schema):
    """The schema without room for fields that it does not know: those that users install allow what later versions add."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    if "properties" in schema and not any("properties" in branch for branch in schema.get("oneOf", [])):
        closed["additionalProperties"] = False
    return closed


def schemas():
    """{kind: schema}"""
    return {path.name.removesuffix(".schema.json"): json.loads(path.read_text(encoding="utf-8"))
            for path in (TOP / "docs/json").glob("*.schema.json")}


def validators(known):
    """{kind: validator}, which resolves references by the $id of the schemas."""
    store = {schema["$id"]: schema for schema in known.values()}
    return {kind: jsonschema.Draft202012Validator(schema, resolver=jsonschema.RefResolver(schema["$id"], schema, store=store))
            for kind, schema in known.items()}


def faults_of_schemas(known, installed):
    """Each has an $id with the version of the form, and allows fields that a later version adds. Each document has an example."""
    exact = validators({kind: strict(schema) for kind, schema in known.items()})
    for kind, schema in known.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        if schema.get("$id") != f"urn:rlock:json:1:{kind}":
            yield f"{kind}.schema.json: its $id is {schema.get('$id')}"
        examples = schema.get("examples", [])
        if not examples and kind != "common":
            yield f"{kind}.schema.json: it has no example"
        for example in examples:
            yield from (f"{kind}.schema.json: example: {error.message[:300]}" for error in exact[kind].iter_errors(example))
    later = {"schema": 1, "version": "1.2.3", "commit": None, "stored_form": 1, "later": True}
    if not installed["version"].is_valid(later):
        yield "version.schema.json: a field of a later version is refused"
    for kind, schema in known.items():
        if "additionalProperties" in json.dumps(schema):
            yield f"{kind}.schema.json: additionalProperties refuses what a later version adds"


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
    of_users = schemas()
    known = validators({kind: strict(schema) for kind, schema in of_users.items()})
    paths = sys.argv[1:] or [TOP / "tests/cli/golden"]
    seen, faults = set(), 0
    for fault in [] if sys.argv[1:] else faults_of_schemas(of_users, validators(of_users)):
        faults += 1
        print(fault)
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
