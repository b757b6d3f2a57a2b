"""What the checks of this folder share: the files of the tree, and how a fault is printed."""
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# A comment of C++, or a literal, which may look as if a comment began in it.
COMMENT = re.compile(r'''(//[^\n]*|/\*.*?\*/)|R"([^()\s\\]*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+[']''', re.DOTALL)
TOP = pathlib.Path(__file__).resolve().parents[2]


def files(*patterns):
    """Paths relative to the top of the tree, in order; a pattern is one of pathlib's globs."""
    found = {path for pattern in patterns for path in TOP.glob(pattern) if path.is_file()}
    return sorted(path.relative_to(TOP) for path in found if "__pycache__" not in path.parts)


def read(path):
    return (TOP / path).read_text(encoding="utf-8", errors="replace")


def needs(*programs):
    """Ends the program as skipped where one of them is not installed."""
    for program in programs:
        if not shutil.which(program):
            print(f"skipped: {program} is not installed (Debian 12 has it)")
            sys.exit(SKIPPED)


def output(*words, **how):
    """(what a program prints, its errors, its exit code), from the top of the tree."""
    done = subprocess.run([*map(str, words)], cwd=TOP, capture_output=True, text=True, check=False, **how)
    return done.stdout, done.stderr, done.returncode


def blanked(pattern, text):
    """Without what matches, and with all its lines."""
    return re.sub(pattern, lambda match: "\n" * match[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)


def without_code(text):
    """A page without its blocks of code."""
    return blanked(r"^```.*?^```", text)


def comments(path, text):
    """(line, text) of each comment. Comments on consecutive lines are one text."""
    if path.suffix in (".cpp", ".hpp"):
        found = [(text.count("\n", 0, match.start()) + 1, match[1]) for match in COMMENT.finditer(text) if match[1]]
    else:
        mark = "--" if path.suffix == ".lua" else "#"
        found = [(number, line[line.index(mark):]) for number, line in enumerate(text.splitlines(), 1)
                 if re.search(rf"(^|\s){mark}(\s|$)", line)]
    joined = []
    for line, comment in found:
        if joined and line == joined[-1][1] + 1:
            joined[-1][1:] = [line, joined[-1][2] + "\n" + comment]
        else:
            joined.append([line, line, comment])
    return [(first, comment) for first, _, comment in joined]


class Faults:
    """Each is printed as FILE:LINE: WHAT; write INSTEAD."""

    def __init__(self):
        self.lines = []

    def add(self, path, line, what, instead=""):
        self.lines.append(f"{path}:{line}: {what}" + (f"; {instead}" if instead else ""))

    def finish(self, checked):
        """Ends the program: 1 when there was a fault."""
        lines = list(dict.fromkeys(self.lines))
        print(*lines, sep="\n", end="\n" if lines else "")
        print(f"{checked}: {len(lines)} faults")
        sys.exit(1 if lines else 0)
