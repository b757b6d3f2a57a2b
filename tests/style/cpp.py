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


CONTROL = {"if", "for", "while", "switch", "catch", "constexpr"}


def begins_function(before):
    """Whether the `{` after these tokens opens a function's body: a parameter list stands before it."""
    words = [token.text for token in before]
    while words and words[-1] in ("const", "noexcept", "override", "final", "mutable", "&"):
        words.pop()
    if "->" in words[-8:]:
        words = words[:len(words) - 1 - words[::-1].index("->")]
        while words and words[-1] in ("const", "noexcept", "mutable"):
            words.pop()
    if not words or words[-1] not in (")", "}"):
        return False
    depth = 0
    for index in range(len(words) - 1, -1, -1):
        depth += words[index] == ")"
        depth -= words[index] == "("
        if depth == 0:
            return index > 0 and words[index - 1] not in CONTROL and words[index - 1] != "]"
    return False


def functions(text):
    """(name, line, lines of the body) of each function; one inside another counts by itself, too."""
    code = [token for token in tokens(text) if token.kind not in ("comment", "directive")]
    found, open_braces, start = [], [], 0
    for index, token in enumerate(code):
        if token.text == "{" and token.kind == "mark":
            before = code[start:index]
            name = next((before[i].text for i in range(len(before) - 1)
                         if before[i + 1].text == "(" and before[i].kind == "word"), "")
            open_braces.append((name if begins_function(before) else "", token.line))
        elif token.text == "}" and token.kind == "mark" and open_braces:
            name, line = open_braces.pop()
            if name:
                found.append((name, line, token.line - line))
        if token.kind == "mark" and token.text in ("{", "}", ";"):
            start = index + 1
    return found
