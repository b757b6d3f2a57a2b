#!/usr/bin/python3
"""A script of src/lua says in its head what it includes, takes and answers: all of that, and nothing else, is in its text.
commands.lua has each command that the scripts call, and BLPOP."""
import functools
import re
import shutil

from compose import composed
from tree import Faults, files, needs, output, read

MOST_LINES = 150
LIBRARY = {"redis", "KEYS", "ARGV", "ipairs", "next", "pairs", "pcall", "math", "setmetatable", "string", "table", "tonumber", "tostring",
           "type", "unpack"}
CONSTANTS = set(re.findall(r"^([A-Z_]+) = ", read("src/lua/constants.lua"), re.MULTILINE))
TEXTS = {path.stem: read(path) for path in files("src/lua/*.lua") if path.stem != "constants"}
SCRIPTS = re.search(r"set\(scripts ([a-z_ ]+)\)", read("src/lua/CMakeLists.txt"))[1].split()
FORMATS = [f"external_{script}" for script in ("acquire", "renew", "release", "inspect")]
DECODE = read("src/redis/store/decode.cpp")
LUAC = shutil.which("luac5.1") or shutil.which("luac") or "luac5.1"


def included(name):
    return [other for line in re.findall(r"^-- include: (.*)$", TEXTS[name], re.MULTILINE) for other in line.split()]


def closure(name, path, faults):
    """The files of a script, each after those that it includes."""
    if name in path:
        faults.add(f"src/lua/{name}.lua", 1, f"includes itself by way of {' '.join(path)}")
        return []
    found = []
    for other in included(name):
        found += [file for file in closure(other, (*path, name), faults) if file not in found]
    return [*found, name]


def check_globals(name, text, faults):
    """A name that no included file defines is a global for the compiler, and a module that is not included is none."""
    listing, errors, code = output(LUAC, "-l", "-p", "-", input=text)
    if code:
        faults.add(f"src/lua/{name}.lua", 1, errors.strip())
    used = set(re.findall(r"[GS]ETGLOBAL.*; (\w+)", listing))
    for unknown in sorted(used - LIBRARY - CONSTANTS):
        faults.add(f"src/lua/{name}.lua", 1, f"uses {unknown}", "include the file that defines it")


@functools.cache
def exports():
    """The functions of each module."""
    return {name: set(re.findall(r"(\w+) = ", found[1])) for name, text in TEXTS.items()
            if (found := re.search(r"^return \{(\w+ = [^}]*)\}\n\Z", text, re.MULTILINE))}


def check_exports(faults):
    """What a file uses of a module is in the table that this module returns."""
    exported = exports()
    for name, text in TEXTS.items():
        code = re.sub(r"--.*", "", text)
        for module, function in re.findall(r"(?<![\w.'])([a-z_]+)\.([a-z_]+)\(", code):
            if module in exported and function not in exported[module]:
                faults.add(f"src/lua/{name}.lua", 1, f"calls {module}.{function}, which {module}.lua does not return")


def section(head, title):
    """Of the comment at the top: the names in the first column below TITLE, or in its own line."""
    found = re.search(rf"^-- {title}: *(.*)\n((?:--   .*\n)*)", head, re.MULTILINE)
    if not found:
        return ""
    return found[1] + "\n" + found[2].replace("--", "  ")


def check_head(name, parts, faults):
    text = TEXTS[name]
    head = re.match(r"(?:--.*\n)*", text)[0]
    own = "".join(TEXTS[part] for part in parts if part not in SHARED)
    used = set(re.findall(r"\bargs\.(\w+)", own))
    named = set(re.findall(r"\w+", section(head, "Arguments")))
    for word in sorted(used - named):
        faults.add(f"src/lua/{name}.lua", 1, f"reads the argument {word}, which its head does not name")
    listed = set(re.findall(r"^ {5}(\w+(?:, \w+)*)(?:  |$)", section(head, "Arguments"), re.MULTILINE))
    for word in sorted({word for row in listed for word in row.split(", ")} - used):
        faults.add(f"src/lua/{name}.lua", 1, f"names the argument {word}, which it does not read")
    answers = set(re.findall(r"return \{'(\w+)'|reply = \{'(\w+)'|and \{'(\w+)'|or \{'(\w+)'|finish\(\{'(\w+)'", own))
    answers = {word for row in answers for word in row if word}
    said = section(head, "Replies")
    for word in sorted(answers):
        if not re.search(rf"\b{word}\b", said):
            faults.add(f"src/lua/{name}.lua", 1, f"answers {word}, which its head does not name")
        if f'"{word}"' not in DECODE:
            faults.add(f"src/lua/{name}.lua", 1, f"answers {word}, which decode.cpp does not know")


def check_commands(parts, faults):
    """What the ACL check and `rlock doctor` ask for."""
    called = {command for part in parts for command in re.findall(r"call\('([A-Z]+)'", TEXTS[part])}
    listed = set(re.findall(r"\{'([A-Z]+)',? ?", TEXTS["commands"])) - {"BLPOP"}
    for command in sorted(called ^ listed):
        faults.add("src/lua/commands.lua", 1, f"{command} is {'called, but not' if command in called else 'not called, but'} listed")


SHARED = set()  # what more than one script is made of


def main():
    faults = Faults()
    needs(LUAC)
    parts_of = {script: closure(script, (), faults) for script in SCRIPTS}
    SHARED.update(name for name in TEXTS if sum(name in parts for parts in parts_of.values()) > 1)
    used_files = {part for parts in parts_of.values() for part in parts} | set(FORMATS) | {"plain", "redisson"}
    for name in sorted(set(TEXTS) - used_files):
        faults.add(f"src/lua/{name}.lua", 1, "no script includes it")
    for name, text in TEXTS.items():
        lines = text.count("\n")
        if lines > MOST_LINES:
            faults.add(f"src/lua/{name}.lua", lines, f"has {lines} lines", f"at most {MOST_LINES}")
    for name, text in composed().items():
        check_globals(name, text, faults)
    check_exports(faults)
    for script, parts in parts_of.items():
        if "begin" in parts and script != "wake":
            check_head(script, parts, faults)
    check_commands({part for script, parts in parts_of.items() if "begin" in parts for part in parts}, faults)
    faults.finish("src/lua")


if __name__ == "__main__":
    main()
