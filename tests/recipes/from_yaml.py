#!/usr/bin/env python3
"""from_yaml.py FILE KEY…: prints what is there: a text as it is, a list line by line, anything else as JSON. Keys may be numbers.

With --arguments, a list is printed with a NUL after each, and $(NAME) in it is what env says, as in Kubernetes.
"""
import json
import re
import sys

import yaml


def main():
    arguments = "--arguments" in sys.argv
    path, *keys = [word for word in sys.argv[1:] if word != "--arguments"]
    with open(path, encoding="utf-8") as file:
        value = yaml.load(file, Loader=yaml.BaseLoader)  # 'on' is a key, 22:00 a text
    parent = None
    for key in keys:
        parent, value = value, value[int(key)] if isinstance(value, list) else value[key]
    if arguments:
        env = {entry["name"]: entry.get("value", "") for entry in parent.get("env", [])}
        words = [re.sub(r"\$\((\w+)\)", lambda match: env[match[1]], word) for word in value]
        sys.stdout.write("".join(word + "\0" for word in words))
    elif isinstance(value, list):
        print(*(word if isinstance(word, str) else json.dumps(word) for word in value), sep="\n")
    else:
        print(value if isinstance(value, str) else json.dumps(value))


main()
