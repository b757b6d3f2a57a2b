#!/usr/bin/env python3
"""names.py RLOCK [--write]: compares docs/names.txt, the public names that every later version keeps, with the program RLOCK and docs/json.
Fails if a name is missing on either side. With --write the list is made anew: a new name gets the version that CMakeLists.txt names, and
no name of a release (packaging/releases) can go.
"""
import json
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
LIST = TOP / "docs/names.txt"
HEAD = """# The public names of rlock: kind, name, and the version since which it exists, separated by tabs. rlock-stability(7) says what they promise.
# Made by tests/compat/names.py RLOCK --write.
"""
FIRST = (1, 0)


def numbers(version):
    return tuple(int(part) for part in version.split(".")[:2])


def schema_names(document, schemas):
    """Each field with its types, and each of its words."""
    def walk(node, path):
        if isinstance(node, bool):
            return
        if "$ref" in node:
            file, _, place = node["$ref"].partition("#")
            target = schemas[file.rsplit(":", 1)[1]] if file else schemas[document]
            for part in place.strip("/").split("/"):
                target = target[part] if part else target
            yield from walk(target, path)
        types = node.get("type", [])
        for kind in [types] if isinstance(types, str) else types:
            yield f"json\t{document} {path or '.'}: {kind}"
        for word in node.get("enum", []) + ([node["const"]] if "const" in node else []):
            yield f"json-word\t{document} {path} {json.dumps(word)}"
        for name, field in node.get("properties", {}).items():
            yield from walk(field, f"{path}.{name}")
        if isinstance(node.get("items"), dict):
            yield from walk(node["items"], f"{path}[]")
        for way in ("anyOf", "oneOf", "allOf"):
            for choice in node.get(way, []):
                yield from walk(choice, path)
    yield from walk(schemas[document], "")


def found_names(rlock):
    """The names of the program, and of its options the version that the table of options says."""
    table = {}
    names = []
    said = subprocess.run([rlock, "--generate", "names"], check=True, capture_output=True, text=True).stdout
    for kind, name, *since in (line.split("\t") for line in said.splitlines()):
        names.append(f"{kind}\t{name}")
        if since:
            table[names[-1]] = since[0]
    schemas = {path.name.removesuffix(".schema.json"): json.loads(path.read_text()) for path in (TOP / "docs/json").glob("*.json")}
    for document in sorted(schemas):
        if document != "common":
            names += schema_names(document, schemas)
    return list(dict.fromkeys(names)), table


def main():
    rlock, write = sys.argv[1], "--write" in sys.argv[2:]
    names, table = found_names(rlock)
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    listed = dict(line.rsplit("\t", 1) for line in lines if line and not line.startswith("#"))
    releases = [line.split()[0] for line in (TOP / "packaging/releases").read_text().splitlines() if line and not line.startswith("#")]
    last = numbers(releases[-1]) if releases else (0, 0)
    version = re.search(r"VERSION (\d+\.\d+)", (TOP / "CMakeLists.txt").read_text().split("project(", 1)[1])[1]
    version = ".".join(map(str, max(FIRST, numbers(version))))

    shown = {name: name.replace("\t", " ") for name in [*names, *listed]}
    faults = [f"{shown[name]}: gone or changed, but a release has it: restore it" for name, since in listed.items()
              if name not in names and numbers(since) <= last]
    if write and not faults:
        LIST.write_text(HEAD + "".join(f"{name}\t{listed.get(name) or table.get(name) or version}\n" for name in names))
        return 0
    again = "tests/compat/names.py RLOCK --write"
    faults += [f"{shown[name]}: listed, but the program does not have it: {again}" for name, since in listed.items()
               if name not in names and numbers(since) > last]
    faults += [f"{shown[name]}: not listed in docs/names.txt: {again}" for name in names if name not in listed]
    faults += [f"{shown[name]}: since {since} in the table of options, since {listed[name]} in docs/names.txt" for name, since in table.items()
               if name in listed and numbers(listed[name]) < numbers(since)]
    print("\n".join(faults))
    return 1 if faults else 0


sys.exit(main())
