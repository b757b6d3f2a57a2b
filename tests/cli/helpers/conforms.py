#!/usr/bin/env python3
"""conforms.py SCHEMA < LINES: each line is a JSON document that SCHEMA allows, else 1 and why.

It knows the words of JSON Schema that docs/json uses, and refuses a schema with any other.
"""
import json
import re
import sys

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
NOTES = {"$schema", "title", "description"}


def is_a(value, kind):
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, TYPES[kind])


def as_list(value):
    return value if isinstance(value, list) else [value]


def check(value, schema, where):
    for word, want in schema.items():
        if word in NOTES or word in ("properties", "additionalProperties"):
            continue
        if word == "type":
            good = any(is_a(value, kind) for kind in as_list(want))
        elif word == "enum":
            good = value in want
        elif word == "required":
            good = all(key in value for key in want)
        elif word == "pattern":
            good = not isinstance(value, str) or re.search(want, value) is not None
        elif word == "minLength":
            good = not isinstance(value, str) or len(value) >= want
        elif word == "minimum":
            good = not is_a(value, "number") or value >= want
        elif word == "items":
            good = True
            for i, item in enumerate(value):
                check(item, want, f"{where}[{i}]")
        else:
            sys.exit(f"{where}: the schema uses {word}, which this check does not know")
        if not good:
            sys.exit(f"{where}: {value!r} is not {word} {want!r}")
    known = schema.get("properties", {})
    for key, inner in value.items() if isinstance(value, dict) else ():
        if key in known:
            check(inner, known[key], f"{where}.{key}")
        elif schema.get("additionalProperties", True) is False:
            sys.exit(f"{where}: {key} is not in the schema")


with open(sys.argv[1], encoding="utf-8") as file:
    top = json.load(file)
for number, line in enumerate(sys.stdin, 1):
    check(json.loads(line), top, f"line {number}")
