#!/usr/bin/python3
"""Names and phrases of words.txt that the tree does not use.

Names are looked for in code without its comments and literals, phrases in every text. The phrases of docs/STYLE.md are counted in the
documents and in the comments of src: each kind has a limit. `words.py prose` prints where these are.
"""
import fnmatch
import re
import sys

from tree import COMMENT, Faults, blanked, comments, files, read

LIST = "tests/style/words.txt"
CODE = tuple(f"{folder}/**/*.{ending}" for folder in ("src", "tests") for ending in ("cpp", "hpp", "lua", "py", "js"))
TEXTS = ("*.md", "CMakeLists.txt", "CMakePresets.json", *(f"{folder}/**/*" for folder in ("src", "tests", "docs", "man", "packaging", ".ci")))
DOCUMENTS = ("*.md", "docs/**/*.md", "tests/**/*.md", "packaging/**/*.md", "man/*.[157]")
COMMENTED = ("src/**/*.cpp", "src/**/*.hpp", "src/**/*.lua")
# What is made from the sources, lists such words, or is no text of ours.
MADE = ("tests/style/*", "docs/STYLE.md", "tests/contract/golden/*", "tests/cli/golden/*", "tests/fuzz/corpus/*")
ENDINGS = {".cpp", ".hpp", ".in", ".lua", ".py", ".js", ".bats", ".bash", ".sh", ".cmake", ".txt", ".md", ".json", ".fish", ".zsh",
           ".toml", ".example", ".1", ".5", ".7", ".service", ".timer", ".patch", ""}
SCRIPT = r'"""(?:.*?)"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''


def whole_word(word):
    """As a word, or as a part of an identifier: tell, Tell, tell_owner, tellOwner."""
    any_case = re.escape(word) if "_" in word or word[0] != word[0].lower() else f"[{word[0]}{word[0].upper()}]{re.escape(word[1:])}"
    upper = re.escape(word.upper())
    part = rf"(?<![A-Za-z]){any_case}(?![a-z])|(?<=[a-z]){re.escape(word[0].upper() + word[1:])}(?![a-z])"
    return rf"{part}|(?<![A-Za-z]){upper}(?![A-Za-z])"


def rules():
    """({kind: [(glob, words, regex, instead)]}, [(glob, regex)], {kind of prose: limit}): what is banned, what is exempt, how often prose may
    have it. Only a text with one of the words is searched: that is quick."""
    banned, exempt, limits = {"code": [], "text": [], "prose": []}, [], {}
    for number, line in enumerate(read(LIST).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if allow := re.match(r"ok (\S+) /(.*)/ # \S", line):
            exempt.append((allow[1], re.compile(allow[2])))
        elif limit := re.match(r"at most (\d+) in (documents|comments)$", line):
            limits[limit[2]] = int(limit[1])
        elif rule := re.match(r"(text|prose) /(.*)/ => (.+)$", line):
            banned[rule[1]].append(("*", [""], re.compile(rule[2], re.MULTILINE), rule[3]))
        elif rule := re.match(r"/(.*)/(?: in (\S+))? => (.+)$", line):
            banned["code"].append((rule[2] or "*", [""], re.compile(rule[1]), rule[3]))
        elif rule := re.match(r"([\w ]+?) => (.+)$", line):
            words = rule[1].split()
            banned["code"].append(("*", [word.lower() for word in words], re.compile("|".join(map(whole_word, words))), rule[2]))
        else:
            raise SystemExit(f"{LIST}:{number}: what is this? {line}")
    return banned, exempt, limits


def chosen(*patterns):
    return [path for path in files(*patterns) if path.suffix in ENDINGS and not any(fnmatch.fnmatch(str(path), made) for made in MADE)]


def code_of(path):
    """Without comments and literals."""
    text = read(path)
    if path.suffix in (".cpp", ".hpp", ".js"):
        return blanked(COMMENT.pattern, text)
    return blanked(rf"{SCRIPT}|{'--' if path.suffix == '.lua' else '#'}[^\n]*", text)


def found(path, text, banned, exempt):
    """(line, what, instead) of each match that no exemption covers."""
    free = [match.span() for glob, regex in exempt if fnmatch.fnmatch(path, glob) for match in regex.finditer(text)]
    lower = text.lower()
    for glob, words, regex, instead in banned:
        if fnmatch.fnmatch(path, glob) and any(word in lower for word in words):
            for match in regex.finditer(text):
                if not any(start <= match.start() and match.end() <= end for start, end in free):
                    yield text.count("\n", 0, match.start()), f'"{" ".join(match[0].split())}"', f"write instead: {instead}"


def prose(banned, exempt):
    """{kind: [(path, line, what, instead)]}: what STYLE.md advises against."""
    return {
        "documents": [(path, 1 + line, *hit) for path in chosen(*DOCUMENTS)
                      for line, *hit in found(str(path), read(path), banned, exempt)],
        "comments": [(path, first + line, *hit) for path in chosen(*COMMENTED) for first, text in comments(path, read(path))
                     for line, *hit in found(str(path), text, banned, exempt)],
    }


def main():
    banned, exempt, limits = rules()
    faults, code, texts = Faults(), chosen(*CODE), chosen(*TEXTS)
    for kind, hits in prose(banned["prose"], exempt).items():
        if "prose" in sys.argv:
            print(*(f"{path}:{line}: {what}; {instead}" for path, line, what, instead in hits), sep="\n")
        if len(hits) > limits[kind]:
            faults.add(LIST, 1, f"{len(hits)} phrases in {kind} that docs/STYLE.md advises against, not {limits[kind]}", "see words.py prose")
        print(f"{kind}: {len(hits)} phrases of at most {limits[kind]}")
    for path in code:
        for line, *hit in found(str(path), code_of(path), banned["code"], exempt):
            faults.add(path, 1 + line, *hit)
    for path in texts:
        for line, *hit in found(str(path), read(path), banned["text"], exempt):
            faults.add(path, 1 + line, *hit)
    faults.finish(f"{len(texts)} files")


main()
