"""The text of each script, as embed.cmake makes it of src/lua, and why a server would not run such a text."""
import re
import shutil
import tempfile

from tree import TOP, output, read

SCRIPTS = re.search(r"set\(scripts ([a-z_ ]+)\)", read("src/lua/CMakeLists.txt"))[1].split()
EXTERNAL = [f"{kind}_{script}" for kind in ("plain", "redisson") for script in ("acquire", "renew", "release", "inspect")]
LIBRARY = {"redis", "KEYS", "ARGV", "ipairs", "next", "pairs", "pcall", "math", "setmetatable", "string", "table", "tonumber", "tostring",
           "type", "unpack"}
LUAC = shutil.which("luac5.1") or shutil.which("luac") or "luac5.1"


def composed():
    """The text of each script."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/scripts.cpp"
        _, errors, code = output("cmake", f"-DOUT={out}", f"-DSCRIPTS={';'.join(SCRIPTS + EXTERNAL)}", f"-DFOLDER={TOP}/src/lua", "-P",
                                 "src/lua/embed.cmake")
        if code:
            raise SystemExit(errors)
        code = read(out)
    texts = re.findall(r'const Script (\w+)\{"\w+",\n((?:"[^"]*"\n?)+)\};', code)
    return {name: bytes.fromhex(re.sub(r"[^0-9a-f]", "", text.replace("\\x", ""))).decode() for name, text in texts}


def exports(text):
    """The names that a module returns, and the function that each of them stands for."""
    table = re.search(r"^return \{(\w+ = [^}]*)\}$", text, re.MULTILINE)
    return dict(re.findall(r"(\w+) = (\w+)", table[1])) if table else {}


def fault_of(text):
    """Why a composed script does not compile, or what it uses that does not exist; '' if a server can run it."""
    listing, errors, code = output(LUAC, "-l", "-p", "-", input=text)
    if code:
        return f"does not compile: {errors.strip().partition('stdin:')[2]}"
    unknown = sorted(set(re.findall(r"[GS]ETGLOBAL.*; (\w+)", listing)) - LIBRARY)
    modules = dict(re.findall(r"^--@ (\w+)\.lua 1\n(.*?)(?=^--@ |\Z)", text, re.MULTILINE | re.DOTALL))
    called = sorted(set(re.findall(r"\bM\.(\w+)\.(\w+)\(", re.sub(r"--(?!@).*", "", text))))
    unknown += [f"{module}.{function}" for module, function in called if function not in exports(modules.get(module, ""))]
    return f"uses {', '.join(unknown)}, which it does not contain" if unknown else ""
