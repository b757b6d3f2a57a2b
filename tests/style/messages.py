#!/usr/bin/python3
"""messages.py [--write]: tests/style/messages.txt has every message of src, to be read together; this test fails when it is
out of date, and --write brings it up to date.

A message is an expression of literals and values joined by `+`: at least one literal has a blank, and a word in lower
case. Values are shown as …, alternatives as (one|other). Not messages: raw literals (scripts), what is compared or
searched for, and what the golden files of --help, the manual or the completions have already: options and examples.
"""
import difflib
import re
import sys

import cpp
from tree import TOP, files, read

GOLDEN = "tests/style/messages.txt"
ELSEWHERE = ("tests/cli/golden/help*.txt", "man/rlock.1", "completions/*")
CLOSING = {"(": ")", "[": "]", "{": "}"}
SEPARATORS = {",", ";", "?", ":", "=", "+=", "return", "<<", "&&", "||", "==", "!="}
COMPARE = {"==", "!="}
# What takes a text to look for, not to print: of the standard library.
SEARCHES = {"find", "rfind", "starts_with", "ends_with", "contains", "static_assert", "getenv", "find_first_of", "find_last_of"}
WRAPPERS = {"string", "string_view", "printable"}
ESCAPES = {"n": "\n", "t": "\t", "0": "", "r": "", "a": "", "e": ""}


def content(literal):
    inner = literal[literal.index('"') + 1:-1]
    inner = re.sub(r"\\x[0-9a-fA-F]+|\\[0-7]{2,3}|\\u[0-9a-fA-F]{4}", "", inner)
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), inner)


def tree_of(tokens):
    """Tokens with each bracketed group as a list: [opening token, …]."""
    top = [None]
    open_groups = [top]
    for token in tokens:
        if token.kind == "mark" and token.text in CLOSING:
            group = [token]
            open_groups[-1].append(group)
            open_groups.append(group)
        elif token.kind == "mark" and token.text in CLOSING.values():
            if len(open_groups) > 1:
                open_groups.pop()
        else:
            open_groups[-1].append(token)
    return top


def segments(group):
    """(what stands between two separators, whether it is compared)"""
    part, before = [], ""
    for item in [*group[1:], None]:
        word = ";" if item is None else "" if isinstance(item, list) or item.kind == "string" else item.text
        if word not in SEPARATORS:
            part.append(item)
            continue
        if part:
            yield part, before in COMPARE or word in COMPARE
        part, before = [], word


def is_wrapper(segment, index):
    """Whether the group at `index` only brackets a part of the text: (a ? "b" : "c"), std::string("d")."""
    if segment[index][0].text == "[":
        return False
    before = segment[index - 1] if index > 0 else None
    return before is None or isinstance(before, list) or before.kind == "mark" or before.text in WRAPPERS


def render(segment, found):
    """The text of one expression; messages in the arguments of its calls go to `found`."""
    out = []
    for index, item in enumerate(segment):
        if isinstance(item, list):
            if is_wrapper(segment, index) and item[0].text == "(":
                choices = [render(part, found) for part, compared in segments(item) if not compared]
                choices = [choice for choice in choices if choice.strip("…")] or ["…"]
                out.append(choices[0] if len(choices) == 1 else f"({'|'.join(choices)})")
            elif not (index > 0 and getattr(segment[index - 1], "text", "") in SEARCHES):
                collect(item, found)
                out.append("…")
        elif item.kind == "string":
            out.append(content(item.text))
        elif item.text != "+":
            out.append("…")
    return re.sub("…+", "…", "".join(out))


def collect(group, found):
    for segment, compared in segments(group):
        text = render(segment, found)
        if not compared:
            found.append(text)


def plain(text):
    """Without layout: as the same text may stand wrapped in a help page or marked up in the manual."""
    text = re.sub(r"\\f[A-Z]|\\\(\w\w|\\&|\\", "", re.sub(r"\n\.\w+", "\n", text))
    return re.sub(r"[\s\"']+", "", text)


def is_message(text, elsewhere):
    words = re.sub(r"%[-0-9.]*[a-z]", "", text)
    lua = "redis.call(" in text
    prose = " " in words.strip("… ") and re.search(r"(?<![\w=-])[a-z]{2,}(?![\w=(])", words)
    return prose and not lua and plain(text) not in elsewhere


def messages(path, elsewhere):
    text = read(path)
    code = [token for token in cpp.tokens(text) if token.kind not in ("comment", "directive", "raw")]
    found = []
    collect(tree_of(code), found)
    kept = (" ".join(message.split()) for message in found if is_message(message, elsewhere))
    return list(dict.fromkeys(kept))


def golden():
    elsewhere = "\0".join(plain(read(path)) for path in files(*ELSEWHERE))
    lines = ["# Every message of src, in the order of the files: read them together. Made by tests/style/messages.py --write"]
    for path in files("src/**/*.cpp", "src/**/*.hpp"):
        if found := messages(path, elsewhere):
            lines += ["", f"== {path}", *found]
    return "\n".join(lines) + "\n"


def main():
    now = golden()
    if "--write" in sys.argv:
        (TOP / GOLDEN).write_text(now, encoding="utf-8")
        return
    stored = read(GOLDEN) if (TOP / GOLDEN).exists() else ""
    changes = list(difflib.unified_diff(stored.splitlines(), now.splitlines(), GOLDEN, "src", lineterm="", n=0))
    print(*changes, sep="\n")
    print(f"{GOLDEN} is " + ("out of date: read what changed above, then run tests/style/messages.py --write" if changes else "up to date"))
    sys.exit(1 if changes else 0)


main()
