"""The text of each script, as embed.cmake makes it of src/lua."""
import re
import tempfile

from tree import TOP, output, read

SCRIPTS = re.search(r"set\(scripts ([a-z_ ]+)\)", read("src/lua/CMakeLists.txt"))[1].split()
EXTERNAL = [f"{kind}_{script}" for kind in ("plain", "redisson") for script in ("acquire", "renew", "release", "inspect")]


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
