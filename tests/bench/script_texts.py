"""The text of the scripts, as src/lua/CMakeLists.txt puts them together."""

import os
import re

LUA = os.path.join(os.path.dirname(__file__), "..", "..", "src", "lua")
KEYS = ("holders", "limits", "queue", "alive", "who", "meta", "released", "history", "never", "once")
with open(os.path.join(LUA, "CMakeLists.txt"), encoding="ascii") as cmake:
    USUAL = re.search(r"set\(shared ([^)]*)\)", cmake.read())[1].replace(".lua", "").split()
FIRST = {"acquire": ("begin", "acquire_rest", "memory", "acquire_short"), "renew": ("begin", "memory", "renew_short"),
         "release": ("begin", "memory", "release_short")}


def script_text(name):
    parts = (*FIRST.get(name, ("begin", "memory")), *USUAL, name)
    out = ""
    for part in parts:
        with open(os.path.join(LUA, part + ".lua"), encoding="ascii") as file:
            out += file.read()
    return out
