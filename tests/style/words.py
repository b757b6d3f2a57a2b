#!/usr/bin/python3
"""No word of words.txt comes back: in sources, tests, pages, scripts and messages."""
import fnmatch
import re

from tree import Faults, files, read

LIST = "tests/style/words.txt"
FOLDERS = ("src", "tests", "docs", "man", "packaging", ".ci")
# What is made from the sources, or is no text of ours.
MADE = ("tests/style/words.txt", "tests/contract/golden/*", "tests/cli/golden/*", "tests/fuzz/corpus/*", "man/rlock.1")
ENDINGS = {".cpp", ".hpp", ".in", ".lua", ".py", ".js", ".bats", ".bash", ".sh", ".cmake", ".txt", ".md", ".json", ".fish", ".zsh",
           ".toml", ".example", ".1", ".5", ".7", ".service", ".timer", ".patch", ""}


def whole_word(word):
    """As a word, or as a part of an identifier: tell, Tell, tell_owner, tellOwner."""
    any_case = re.escape(word) if "_" in word or word[0] != word[0].lower() else f"[{word[0]}{word[0].upper()}]{re.escape(word[1:])}"
    upper = re.escape(word.upper())
    part = rf"(?<![A-Za-z]){any_case}(?![a-z])|(?<=[a-z]){re.escape(word[0].upper() + word[1:])}(?![a-z])"
    return rf"{part}|(?<![A-Za-z]){upper}(?![A-Za-z])"


def rules():
    """([(glob, words, regex, instead)], [(glob, regex)]). Only a text with one of the words is searched: that is quick."""
    banned, allowed = [], []
    for number, line in enumerate(read(LIST).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if allow := re.match(r"ok (\S+) /(.*)/ # \S", line):
            allowed.append((allow[1], re.compile(allow[2])))
        elif rule := re.match(r"/(.*)/(?: in (\S+))? => (.+)$", line):
            banned.append((rule[2] or "*", [""], re.compile(rule[1]), rule[3]))
        elif rule := re.match(r"([\w ]+?)(?: in (\S+))? => (.+)$", line):
            words = rule[1].split()
            regex = re.compile("|".join(map(whole_word, words)))
            banned.append((rule[2] or "*", [word.lower() for word in words], regex, rule[3]))
        else:
            raise SystemExit(f"{LIST}:{number}: neither WORDS => INSTEAD nor ok PATTERN /REGEX/ # WHY: {line}")
    return banned, allowed


def texts():
    for path in files("*.md", "CMakeLists.txt", "CMakePresets.json", *(f"{folder}/**/*" for folder in FOLDERS)):
        if path.suffix in ENDINGS and not any(fnmatch.fnmatch(str(path), made) for made in MADE):
            yield path


def found(path, text, banned, exempt):
    """(position, what, instead) of each word that no exemption covers."""
    lower = text.lower()
    free = [match.span() for regex in exempt for match in regex.finditer(text)]
    for glob, words, regex, instead in banned:
        if not fnmatch.fnmatch(path, glob) or not any(word in lower for word in words):
            continue
        for match in regex.finditer(text):
            if not any(start <= match.start() and match.end() <= end for start, end in free):
                yield match.start(), match.group(), instead


def main():
    banned, allowed = rules()
    faults, count = Faults(), 0
    for path in texts():
        count += 1
        text = read(path)
        exempt = [regex for glob, regex in allowed if fnmatch.fnmatch(str(path), glob)]
        for position, what, instead in sorted(found(str(path), text, banned, exempt)):
            faults.add(path, text.count("\n", 0, position) + 1, f'"{" ".join(what.split())}"', f"write instead: {instead}")
    faults.finish(f"{count} files")


main()
