#!/usr/bin/python3
"""The rules for authors of src/lua: each function here is one. Names that do not exist are found in the composed scripts (composed.py).
commands.lua has each command that the scripts call, and BLPOP."""
import graphlib
import re

from compose import SCRIPTS, exports
from tree import Faults, files, read

MOST_LINES = 150
TEXTS = {path.stem: read(path) for path in files("src/lua/*.lua") if path.stem != "constants"}
# Without comments and what stands in strings, line by line.
CODE = {name: re.sub(r"--.*|'(?:\\.|[^'\\\n])*'", lambda found: "''" if found[0][0] == "'" else "", text) for name, text in TEXTS.items()}
EXPORTS = {name: exports(text) for name, text in CODE.items() if exports(text)}  # of each module
KNOWN = ("begin", "memory")  # their names are known to all files
FORMATS = ("plain", "redisson")
# The starts of everything that a server runs.
STARTS = [*SCRIPTS, *KNOWN, *FORMATS, *(f"external_{script}" for script in ("acquire", "renew", "release", "inspect"))]
DECODE = read("src/redis/store/decode.cpp")


def where(pattern, text):
    """(line, match) of each match."""
    return [(text.count("\n", 0, found.start()) + 1, found) for found in re.finditer(pattern, text, re.MULTILINE)]


def included(name):
    return [other for line in re.findall(r"^-- include: (.*)$", TEXTS[name], re.MULTILINE) for other in line.split()]


def called(code):
    """(module, function) of each call of another file."""
    return {(module, function) for module, function in re.findall(r"(?<![\w.])(\w+)\.(\w+)\b", code) if module in EXPORTS}


def parts_of(script):
    """The files of a script."""
    parts = [script]
    for part in parts:
        parts += [other for other in included(part) if other not in parts]
    return parts


def bodies(name):
    """The text of each function of a file, and below '' what the file does when it is loaded."""
    function = re.compile(r"^local function (\w+)(\(.*\bend|.*\n(?:.*\n)*?end)$", re.MULTILINE)
    return {**dict(function.findall(CODE[name])), "": re.sub(r"^return \{\w+ = [^}]*\}$", "", function.sub("", CODE[name]), flags=re.MULTILINE)}


def check_length(faults):
    for name, text in TEXTS.items():
        if text.count("\n") > MOST_LINES:
            faults.add(f"src/lua/{name}.lua", MOST_LINES, f"has {text.count(chr(10))} lines", f"at most {MOST_LINES}")


def check_includes(faults):
    """A file includes the modules that it calls, and no other. A script about a lock includes `memory`, and no file includes itself."""
    for name, code in CODE.items():
        listed, needed = set(included(name)) - set(KNOWN), {module for module, _ in called(code)} - {name}
        for other in sorted(needed - listed):
            faults.add(f"src/lua/{name}.lua", 1, f"calls {other}, which it does not include")
        for other in sorted(listed - needed):
            faults.add(f"src/lua/{name}.lua", 1, f"includes {other}, which it does not call")
        if name in EXPORTS:
            for other in sorted(set(included(name)) & set(KNOWN)):
                faults.add(f"src/lua/{name}.lua", 1, f"includes {other}", "only a script does")
    try:
        graphlib.TopologicalSorter({name: included(name) for name in TEXTS}).prepare()
    except graphlib.CycleError as error:
        faults.add(f"src/lua/{error.args[1][0]}.lua", 1, f"includes itself by way of {' '.join(error.args[1][1:])}")


def check_exports(faults):
    """A module returns functions of its own, each of which another file calls."""
    for module, functions in EXPORTS.items():
        for function, own in functions.items():
            if own not in bodies(module):
                faults.add(f"src/lua/{module}.lua", 1, f"returns {function}, which is not a function of the file")
            if not any((module, function) in called(code) for name, code in CODE.items() if name != module):
                faults.add(f"src/lua/{module}.lua", 1, f"returns {function}, which no other file calls")


def check_reached(faults):
    """A script reaches each function."""
    known = [(name, function) for name in (*KNOWN, *FORMATS) for function in bodies(name)]
    functions = {(name, function): body for name in CODE for function, body in bodies(name).items()}
    reached = [(name, "") for name in STARTS]
    for name, function in reached:
        body = functions[name, function]
        words = set(re.findall(r"(?<![\w.])\w+", body))
        next_ones = [(name, word) for word in words] + [one for one in known if one[1] in words]
        next_ones += [(module, EXPORTS[module].get(other)) for module, other in called(body)]
        reached += [one for one in {*next_ones, *((module, "") for module, _ in called(body))} if one in functions and one not in reached]
    for name, function in sorted(functions.keys() - set(reached)):
        faults.add(f"src/lua/{name}.lua", 1, f"has {function or 'code'}, which no script reaches")


def check_nested(faults):
    """The function around a function calls it."""
    for name, code in CODE.items():
        for line, found in where(r"^ +local function (\w+)", code):
            if len(re.findall(rf"\b{found[1]}\b", code)) == 1:
                faults.add(f"src/lua/{name}.lua", line, f"has {found[1]}, which nothing calls")


def check_top_level(faults):
    """A module calls no other while it is loaded, because two that do so load each other for ever."""
    for name in EXPORTS:
        for module, function in sorted(called(bodies(name)[""])):
            faults.add(f"src/lua/{name}.lua", 1, f"calls {module}.{function} while it is loaded", "call it in a function")


def check_names(faults):
    """A local or a parameter named like a module would hide it from the reader, and from embed.cmake."""
    for name, code in CODE.items():
        for line, found in where(r"\blocal (?!function)([\w, ]+)|\bfor ([\w, ]+) (?:in|=)|\bfunction ?(\w*)\(([\w, ]*)\)", code):
            for word in sorted(set(re.findall(r"\w+", " ".join(filter(None, found.groups())))) & EXPORTS.keys()):
                faults.add(f"src/lua/{name}.lua", line, f"names something else {word}, like a module")


def check_memory(faults):
    """nil in `memory` lets the stored value appear again."""
    for name, code in CODE.items():
        for line, _ in where(r"(?<!, )\bmemory(?:\.\w+|\[[^\]]*\]) = (?:nil|.*\bor nil)\b", code):
            faults.add(f"src/lua/{name}.lua", line, "stores nil in the memory", "false deletes a field")


def fields_of(table, code):
    """What a constructor names; None if there is none."""
    found = re.search(rf"\b{table} = \{{((?:[^{{}}]|\{{[^{{}}]*\}})+)\}}", code)
    return set(re.findall(r"(\w+) =(?!=)", re.sub(r"\{.*?\}", "", found[1]))) if found else None


def check_fields(script, faults):
    """A field that a table does not have is nil."""
    parts = {part: CODE[part] for part in parts_of(script)}
    for table in ("at_start", "request"):
        known = set().union(*(fields_of(table, code) or () for code in parts.values()))
        for part, code in parts.items():
            for line, found in where(rf"(?<![\w.]){table}\.(\w+)", code):
                if found[1] not in known:
                    faults.add(f"src/lua/{part}.lua", line, f"reads {table}.{found[1]}, which {script} does not have")


def section(head, title):
    """Of the comment at the top: what stands below TITLE, or in its own line."""
    found = re.search(rf"^-- {title}: *(.*)\n((?:--   .*\n)*)", head, re.MULTILINE)
    return found[1] + "\n" + found[2].replace("--", "  ") if found else ""


def check_head(script, shared, faults):
    """The head of a script names its arguments, no others, and its replies, which the client knows."""
    head = re.match(r"(?:--.*\n)*", TEXTS[script])[0]
    own = "".join(TEXTS[part] for part in parts_of(script) if part not in shared)
    used = set(re.findall(r"\bargs\.(\w+)", own))
    arguments, replies = section(head, "Arguments"), section(head, "Replies")
    for word in sorted(used - set(re.findall(r"\w+", arguments))):
        faults.add(f"src/lua/{script}.lua", 1, f"reads the argument {word}, which its head does not name")
    listed = set(re.findall(r"\w+", " ".join(re.findall(r"^ {5}(\w+(?:, \w+)*)(?:  |$)", arguments, re.MULTILINE))))
    for word in sorted(listed - used):
        faults.add(f"src/lua/{script}.lua", 1, f"names the argument {word}, which it does not read")
    for word in sorted(set(re.findall(r"\{'([a-z_]+)'[,}]", own)) - {"wakes"}):
        if not re.search(rf"\b{word}\b", replies):
            faults.add(f"src/lua/{script}.lua", 1, f"answers {word}, which its head does not name")
        if f'"{word}"' not in DECODE:
            faults.add(f"src/lua/{script}.lua", 1, f"answers {word}, which decode.cpp does not know")


def check_commands(faults):
    """What the ACL check and `rlock doctor` ask for."""
    parts = {part for script in SCRIPTS if "begin" in parts_of(script) for part in parts_of(script)}
    run = {command for part in parts for command in re.findall(r"call\('([A-Z]+)'", TEXTS[part])}
    listed = set(re.findall(r"\{'([A-Z]+)',? ?", TEXTS["commands"])) - {"BLPOP"}
    for command in sorted(run ^ listed):
        faults.add("src/lua/commands.lua", 1, f"{command} is {'called, but not' if command in run else 'not called, but'} listed")


def check_questions(faults):
    """docs/ARCHITECTURE.md says which file answers which question."""
    page = read("docs/ARCHITECTURE.md").partition("\n## The scripts\n")[2].partition("\n## ")[0]
    for name in sorted(set(re.findall(r"`(\w+)\.lua`", page)) ^ {*EXPORTS, "memory"}):
        faults.add("docs/ARCHITECTURE.md", 1, f"the table of The scripts has no {name}.lua" if name in TEXTS else f"there is no {name}.lua")


def main():
    faults = Faults()
    for check in (check_length, check_includes, check_exports, check_reached, check_nested, check_top_level, check_names, check_memory,
                  check_commands, check_questions):
        check(faults)
    about_a_lock = [script for script in SCRIPTS if "begin" in parts_of(script) and script != "wake"]
    shared = {name for name in TEXTS if sum(name in parts_of(script) for script in SCRIPTS) > 1}
    for script in about_a_lock:
        check_fields(script, faults)
        check_head(script, shared, faults)
    faults.finish("src/lua")


if __name__ == "__main__":
    main()
