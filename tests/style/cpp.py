"""A C++ source as tokens: enough to find comments, literals and the braces of functions."""
import re
from dataclasses import dataclass

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<char>(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+')
  | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<word>[A-Za-z_0-9][\w']*)
  | (?P<mark2>->|::|<<|>>|[=!<>+]=|&&|\|\||[^\s])
""", re.VERBOSE | re.DOTALL | re.MULTILINE)


@dataclass
class Token:
    kind: str
    text: str
    line: int


def tokens(text):
    """All but white space, each with the number of its line."""
    out, line, position = [], 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        kind = match.lastgroup if match.lastgroup != "mark" else "raw"
        out.append(Token("mark" if kind == "mark2" else kind, match.group(), line))
    return out
