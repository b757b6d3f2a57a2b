"""A terminal that keeps what its screen shows."""
import os
import re
import termios

from terminal import Terminal

SEQUENCE = re.compile(rb"\x1b\[([?0-9;]*)([A-Za-z])")


class Screen(Terminal):
    def __init__(self, argv, columns=100, rows=24, env=None):
        self.rest = b""
        # The size comes before the program.
        super().__init__(["sh", "-c", 'stty cols "$1" rows "$2" && shift 2 && exec "$@"', "sh", str(columns), str(rows), *argv],
                         {**os.environ, **(env or {})})
        self.cells = {}
        self.at = (1, 1)
        self.alternate = False
        self.size = (columns, rows)

    def resize(self, rows, columns):
        self.size = (columns, rows)
        super().resize(rows, columns)

    def cooked(self):
        """Whether the terminal echoes and collects lines, as a shell wants it."""
        return bool(self.modes() & termios.ICANON)

    def lines(self):
        rows = [" "] * self.size[1]
        for row in range(1, self.size[1] + 1):
            last = max((column for (at, column) in self.cells if at == row), default=0)
            rows[row - 1] = "".join(self.cells.get((row, column), " ") for column in range(1, last + 1)).rstrip()
        return rows

    def text(self):
        return "\n".join(self.lines())

    def take(self, seconds):
        piece = super().take(seconds)
        if piece:
            self.show(self.rest + piece)
        return piece

    def show(self, data):
        at = 0
        self.rest = b""
        while at < len(data):
            if data[at:at + 1] == b"\x1b":
                found = SEQUENCE.match(data, at)
                if not found:
                    self.rest = data[at:]
                    return
                self.control(found[1].decode(), found[2].decode())
                at = found.end()
                continue
            length = 1
            first = data[at]
            if first >= 0xC0:
                length = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            if at + length > len(data):
                self.rest = data[at:]
                return
            self.put(data[at:at + length].decode(errors="replace"))
            at += length

    def put(self, character):
        row, column = self.at
        if character == "\r":
            self.at = (row, 1)
        elif character == "\n":
            self.at = (row + 1, column)
        else:
            self.cells[(row, column)] = character
            self.at = (row, column + 1)

    def control(self, numbers, letter):
        row, column = self.at
        if letter == "H":
            parts = [int(part or 1) for part in (numbers or "1;1").split(";")]
            self.at = (parts[0], parts[1])
        elif letter == "K":
            self.cells = {where: c for where, c in self.cells.items() if where[0] != row or where[1] < column}
        elif letter == "J":
            self.cells = {}
        elif numbers == "?1049":
            self.alternate = letter == "h"
            self.cells = {}

    def state(self):
        return f"\n{self.text()}\n{super().state()}"

    def until(self, holds, what=""):
        """Reads until holds() is true or the text is on the screen."""
        super().until(holds if callable(holds) else lambda: holds in self.text(), what or holds)
