"""What the checks of this folder share: the files of the tree, and how a fault is printed."""
import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]


def files(*patterns):
    """Paths relative to the top of the tree, in order; a pattern is one of pathlib's globs."""
    found = {path for pattern in patterns for path in TOP.glob(pattern) if path.is_file()}
    return sorted(path.relative_to(TOP) for path in found if "__pycache__" not in path.parts)


def read(path):
    return (TOP / path).read_text(encoding="utf-8", errors="replace")


class Faults:
    """Each is printed as FILE:LINE: WHAT; write INSTEAD."""

    def __init__(self):
        self.lines = []

    def add(self, path, line, what, instead=""):
        self.lines.append(f"{path}:{line}: {what}" + (f"; {instead}" if instead else ""))

    def finish(self, checked):
        """Ends the program: 1 when there was a fault, and when nothing was checked at all."""
        print(*self.lines, sep="\n", end="\n" if self.lines else "")
        print(f"{checked}: {len(self.lines)} faults")
        sys.exit(1 if self.lines else 0)
