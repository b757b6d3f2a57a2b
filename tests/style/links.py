#!/usr/bin/python3
"""Every link between the pages of the tree resolves, and every path and page that pages and comments name exists.

In pages: [text](target#anchor), paths and `test_…` in backticks, and "names of tests" on the pages of QUOTED. Each row of
docs/report/data/faults.tsv ends in `file`: "name", and the name is in that file. Each fault of docs/FAULTS.md has a test in
docs/faults.tsv, a row each, and docs/rules.tsv has those of the sections of docs/PROTOCOL.md and docs/SUPERVISION.md. In comments of src and tests: paths below the folders of
the tree, NAME.md, and sections: docs/PROTOCOL.md, "Release".
"""
import re

from tree import TOP, Faults, comments, files, read, without_code

PAGES = ("*.md", "docs/**/*.md", "src/**/*.md", "tests/**/*.md", "packaging/**/*.md")
FOLDERS = "src|tests|docs|man|packaging|completions"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(rf"(?<![\w/.$}}-])((?:{FOLDERS})/[\w./*{{}},-]*[\w/*}}])")
FILE = re.compile(r"(?<![\w/.<$~-])([\w./-]*[\w-]\.(?:cpp|hpp|py|bats|bash|cmake))(?![\w/])")
PAGE = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)*[\w-]+\.md)\b(?:,?\s+(?://|\#)?\s*\"([^\"]+)\")?")
QUOTED = ("docs/faults.tsv", "docs/rules.tsv")
FAULT_TESTS = "docs/faults.tsv"
RULE_TESTS = "docs/rules.tsv"
FAULTS_FOUND = "docs/report/data/faults.tsv"
MADE = re.compile(r"tests/style/passed|build/")


def slug(heading):
    """As GitHub makes an anchor of a heading."""
    text = re.sub(r"`|\*|\[([^\]]*)\]\([^)]*\)", lambda match: match[1] or "", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def headings(path):
    """The texts of a page's headings; not the comments in its blocks of code."""
    return [match.strip() for match in re.findall(r"^#{1,6} (.+?)#*$", without_code(read(path)), re.MULTILINE)]


def anchors(path):
    seen, found = {}, set()
    for name in map(slug, headings(path)):
        found.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return found


def expand(path):
    """a/{b,c}.hpp is two paths."""
    match = re.search(r"\{([^}]*)\}", path)
    if not match:
        return [path]
    return [other for part in match[1].split(",") for other in expand(path[:match.start()] + part + path[match.end():])]


def exists(path, folder):
    roots = [TOP, TOP / "src", TOP / "tests", TOP / folder]
    return any((root / path).exists() or ("*" in path and any(root.glob(path))) for root in roots)


def check_link(path, line, target, faults):
    if re.match(r"[a-z]+:", target):
        return
    name, _, anchor = target.partition("#")
    other = (TOP / path.parent / name).resolve() if name else TOP / path
    if not other.exists():
        faults.add(path, line, f"the link leads nowhere: {target}", "name what there is")
    elif anchor and other.suffix == ".md" and anchor not in anchors(other.relative_to(TOP)):
        faults.add(path, line, f"{name or path} has no heading #{anchor}")


def check_names(path, line, text, known, faults):
    """Paths and pages that a text names."""
    named = {match[1] for match in PATH.finditer(text)} | {match[1] for match in FILE.finditer(text)}
    for name in sorted(one for each in named for one in expand(each.rstrip(".")) if not one.endswith(".md")):
        there = exists(name, path.parent) or ("/" not in name and name in known)
        if not there and not MADE.match(name):
            faults.add(path, line, f"there is no {name}")
    for match in PAGE.finditer(text):
        pages = [page for page in files(*PAGES) if str(page).endswith(match[1])]
        if not pages:
            faults.add(path, line, f"there is no page {match[1]}")
        section = re.sub(r"\s*\n\s*(?://|#|--)?\s*", " ", match[2] or "")
        if pages and section and not any(section in headings(page) for page in pages):
            faults.add(path, line, f'{match[1]} has no section "{section}"')


def one_line(text):
    """Names of tests may be broken: at the end of a line of a page, and into several literals of C++."""
    return re.sub(r"\s+", " ", re.sub(r'"\s*\n\s*"', "", text))


def check_tests(path, text, tests, faults):
    """Names of tests on a page."""
    plain = without_code(text)
    found = list(re.finditer(r"`(test_\w+)`", plain))
    if str(path) in QUOTED:
        found += re.finditer(r'"([^"]+)"', re.sub(r"`[^`]*`", lambda match: "`" * len(match[0]), plain))
    for match in found:
        if one_line(match[1]) not in tests:
            line = plain.count("\n", 0, match.start()) + 1
            faults.add(path, line, f'there is no test "{one_line(match[1])}"', "name one that there is")


def check_rule_tests(path, text, known, tests, faults):
    """The rows of docs/rules.tsv are about sections that there are, and name tests that there are."""
    for number, row in enumerate(text.splitlines()[1:], 2):
        page, section, _, test = row.split("\t")
        if section not in headings(f"docs/{page}"):
            faults.add(path, number, f'docs/{page} has no section "{section}"')
        for name in re.findall(r"`([^`]+)`", test):
            check_names(path, number, name, known, faults)
    check_tests(path, text, tests, faults)


def check_fault_tests(path, text, known, tests, faults):
    """The rows of docs/faults.tsv are about the faults of docs/FAULTS.md, and name tests that there are."""
    page = without_code(read("docs/FAULTS.md")).split("\n### ", 1)[1].split("\n## ")[0]
    listed = {row[1].strip() for row in (line.split("|") for line in page.splitlines()) if len(row) == 5} - {"fault", "---"}
    named = set()
    for number, row in enumerate(text.splitlines()[1:], 2):
        fault, _, test = row.partition("\t")
        named.add(fault)
        if fault not in listed:
            faults.add(path, number, f"docs/FAULTS.md has no row {fault}")
        for name in re.findall(r"`([^`]+)`", test):
            check_names(path, number, name, known, faults)
    check_tests(path, text, tests, faults)
    for fault in sorted(listed - named):
        faults.add(path, 1, f"no test of: {fault}", "add a row")


def check_fault(path, line, text, faults):
    """A row of the faults that were found: its last cell names tests that repeat the fault, each with its file."""
    named = re.findall(r'`([^`]+)`: (?:"([^"]+)"|`(test_\w+)`)', text.rsplit("\t", 1)[-1])
    if not named:
        faults.add(path, line, "the row names no test", 'end it in `file`: "name"')
    for file, *names in named:
        name = "".join(names)
        if not (TOP / file).is_file() or name not in one_line((TOP / file).read_text(encoding="utf-8")):
            faults.add(path, line, f'{file} has no test "{name}"', "name one that there is")


def main():
    faults = Faults()
    sources = files(*(f"{folder}/**/*.{ending}" for folder in ("src", "tests")
                      for ending in ("cpp", "hpp", "lua", "py", "bats", "bash", "sh", "cmake", "txt")))
    known = {path.name for path in sources} | {path.name for path in files("man/*", "packaging/**/*", "completions/*")}
    pages = files(*PAGES)
    tests = "\0".join(one_line(read(path)) for path in sources if path.parts[0] == "tests" and path.suffix in (".cpp", ".hpp", ".py", ".bats"))
    for path in pages:
        check_tests(path, read(path), tests, faults)
        for number, line in enumerate(read(path).splitlines(), 1):
            for match in LINK.finditer(line):
                check_link(path, number, match[1], faults)
            for match in re.finditer(r"`([^`]+)`", line):
                check_names(path, number, match[1], known, faults)
    for path in files(FAULT_TESTS):
        check_fault_tests(path, read(path), known, tests, faults)
    for path in files(RULE_TESTS):
        check_rule_tests(path, read(path), known, tests, faults)
    for path in files(FAULTS_FOUND):
        for number, line in enumerate(read(path).splitlines()[1:], 2):
            check_fault(path, number, line, faults)
    for path in sources:
        if "corpus" not in path.parts and "style" not in path.parts:
            for number, comment in comments(path, read(path)):
                check_names(path, number, comment, known, faults)
    faults.finish(f"{len(pages)} pages, {len(sources)} sources")


main()
