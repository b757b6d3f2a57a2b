#!/usr/bin/python3
"""The rooms (folders) of src include each other as docs/ARCHITECTURE.md draws it, and not otherwise.

The page has a fenced block that begins with ```rooms, with one line a room: what its files may include.
    cli/output -> lock util
    util
`rooms.py --draw` prints the block as the includes are now.
"""
import sys

from tree import INCLUDE, Faults, files, read

PAGE = "docs/ARCHITECTURE.md"


def room_of(path):
    """The folder below src; `src` itself for main.cpp."""
    return "/".join(path.parts[1:-1]) or "src"


def graph():
    """{room: {room that it includes: (file, line)}} with the first place of each arrow."""
    arrows = {}
    for path in files("src/**/*.cpp", "src/**/*.hpp"):
        text = read(path)
        own = arrows.setdefault(room_of(path), {})
        for match in INCLUDE.finditer(text):
            other = match.group(1).rpartition("/")[0] or room_of(path)
            if other != room_of(path):
                own.setdefault(other, (path, text.count("\n", 0, match.start(1)) + 1))
            arrows.setdefault(other, {})
    return arrows


def drawn(faults):
    """{room: {room: line}} of the page."""
    rooms, inside = {}, False
    for number, line in enumerate(read(PAGE).splitlines(), 1):
        if line.startswith("```"):
            inside = line.strip() == "```rooms"
        elif inside and line.strip():
            room, _, others = line.partition("->")
            rooms[room.strip()] = {other: number for other in others.split()}
    if not rooms:
        faults.add(PAGE, 1, "there is no block ```rooms", "see rooms.py --draw")
    return rooms


def reachable(arrows, room):
    """All rooms behind one."""
    found, todo = set(), [room]
    while todo:
        new = set(arrows.get(todo.pop(), ())) - found
        found |= new
        todo += new
    return found


def check_arrows(there, page, faults):
    for room, others in sorted(there.items()):
        if page and room not in page:
            faults.add(PAGE, 1, f"the room {room} is not drawn", f"{room} -> {' '.join(sorted(others))}")
            continue
        for other, (path, line) in sorted(others.items()) if page else ():
            if other not in page[room]:
                faults.add(path, line, f"{room} -> {other} is not drawn in {PAGE}", "include nothing of that room")
    for room, others in page.items():
        for other, line in sorted(others.items()):
            if other not in there.get(room, {}):
                faults.add(PAGE, line, f"{room} -> {other} is drawn but nothing includes it", "remove it")
        if room not in there:
            faults.add(PAGE, 1, f"there is no room {room} in src", "remove it")


def check_cycles(there, faults):
    behind = {room: reachable(there, room) for room in there}
    for room, others in sorted(there.items()):
        for other, (path, line) in sorted(others.items()):
            if room in behind[other]:
                around = ", ".join(sorted(one for one in behind[room] if room in behind[one]))
                faults.add(path, line, f"{room} -> {other} is part of a cycle of {around}", "leave one of its arrows out")


def main():
    there = graph()
    if "--draw" in sys.argv:
        for room, others in sorted(there.items()):
            print(f"{room} -> {' '.join(sorted(others))}" if others else room)
        return
    faults = Faults()
    check_arrows(there, drawn(faults), faults)
    check_cycles(there, faults)
    faults.finish(f"{len(there)} rooms")


main()
