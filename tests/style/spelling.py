#!/usr/bin/python3
"""spelling.py [--write]: aspell knows each word of the pages, the manual, the messages and the help, or spelling.txt has it;
codespell knows no word of the pages and sources as a common mistake.

What is code is not looked at: in backticks, in bold or italics in the manual, paths, options, names in capitals. Is a
word right that aspell does not know? --write adds all such words to spelling.txt: read the change before you commit it.
"""
import re
import sys
import textwrap

from tree import TOP, Faults, blanked, files, needs, output, read, without_code

LIST = "tests/style/spelling.txt"
PAGES = ("*.md", "docs/**/*.md", "tests/**/README.md", "man/*.[157]", "tests/cli/golden/help*.txt")
MISTAKES_IN = ("*.md", "docs/**/*.*", "tests/**/*.md", "man/*", "src/**/*.*", "packaging/**/*.*")
CAMEL_CASE = r"\b\w*[a-z][A-Z]\w*\b"


def prose(path, text):
    """The text with what is code blanked out, line by line."""
    if path.suffix == ".md":
        text = re.sub(r"`[^`\n]*`|\]\([^)]*\)", " ", without_code(text))
    if path.suffix in (".1", ".5", ".7"):
        text = re.sub(r"^(\.(?!SH|SS)|'|\\\").*$", "", blanked(r"^\.nf$.*?^\.fi$", text), flags=re.MULTILINE)
        text = re.sub(r"\\f[BI].*?\\f[RP]", " ", text)
        text = re.sub(r"\\\(aq", "'", re.sub(r"\\-", "-", text))
        text = re.sub(r"\\\(\w\w|\\&|\\f.", " ", text)
    text = re.sub(r"(?<=\w)'s\b", "", text)
    # Paths, options, identifiers, NAMES, whatever has a digit, and what stands in quotes as one word.
    return re.sub(r"(?<!\w)--?[a-z][\w-]*|\S*[\w/]/[\w/.*-]*|\w*[\d_]\w*|\b[A-Z][A-Z]+\b|[\w.+-]+[:=.@]\S+|[\"'][\w-]+[\"']", " ", text)


def unknown(text):
    """Words that aspell does not know."""
    words, errors, code = output("aspell", "list", "--lang=en_GB", "--encoding=utf-8", "--ignore=2", input=text)
    if code != 0:
        sys.exit(f"aspell failed: {errors}")
    return set(words.split())


def check_pages(known, faults):
    new = set()
    for path in files(*PAGES):
        text = prose(path, read(path))
        strange = {word for word in unknown(text) if word.lower() not in known}
        new |= {word.lower() for word in strange}
        for number, line in enumerate(text.splitlines(), 1):
            for word in sorted(strange & set(re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", line))):
                faults.add(path, number, f'"{word}"', f"spell it otherwise, or add it to {LIST}")
    return new


def check_mistakes(known, faults):
    found, _, _ = output("codespell", "--skip=*.svg", f"--ignore-words-list={','.join(known)}", f"--ignore-regex={CAMEL_CASE}", *files(*MISTAKES_IN))
    for path, line, what in re.findall(r"^([^:\n]+):(\d+): (.*)$", found, re.MULTILINE):
        wrong, _, right = what.partition(" ==> ")
        faults.add(path.removeprefix("./"), line, f'"{wrong}"', f"write instead: {right}")


def main():
    needs("aspell", "codespell")
    known = set(read(LIST).lower().split()) if (TOP / LIST).exists() else set()
    faults = Faults()
    new = check_pages(known, faults)
    if "--write" in sys.argv:
        text = textwrap.fill(" ".join(sorted(known | new)), 130, break_on_hyphens=False, break_long_words=False)
        (TOP / LIST).write_text(text + "\n", encoding="utf-8")
        return
    check_mistakes(known, faults)
    faults.finish(f"{len(files(*PAGES))} pages")


main()
