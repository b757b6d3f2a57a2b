#!/usr/bin/python3
"""sbom_test.py BUILD: what packaging/sbom.py lists agrees with the command that links rlock in BUILD."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "packaging/sbom.py"
# Headers whose code is in the program, wherever the linker has nothing of them.
COMPILED_IN = {"libcli11-dev", "libfmt-dev", "libtomlplusplus-dev", "nlohmann-json3-dev"}


def listed(build):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "rlock.spdx.json"
        subprocess.run([sys.executable, "-B", SCRIPT, build, "rlock", out], check=True)
        licenses = pathlib.Path(f"{out}.licenses").read_text(encoding="utf-8")
        return json.loads(out.read_text(encoding="utf-8")), licenses


def linked_in(command):
    """The packages of the archives that the command names, and of those that its options mean."""
    archives = set(re.findall(r"(?<=\s)/\S+\.a(?=\s|$)", command))
    if "-static-libstdc++" in command or " -static" in command:
        archives.add(subprocess.run(["g++", "-print-file-name=libstdc++.a"], check=True, capture_output=True, text=True).stdout.strip())
    found = subprocess.run(["dpkg-query", "--search", *(str(pathlib.Path(name).resolve()) for name in archives)],
                           capture_output=True, text=True, check=False).stdout
    return {line.split(":")[0] for line in found.splitlines()}


def main():
    build = sys.argv[1]
    command = subprocess.run(["ninja", "-t", "commands", "-s", "src/rlock"], check=True, capture_output=True, text=True, cwd=build).stdout
    spdx, licenses = listed(build)
    relations = {relation["relatedSpdxElement"]: relation["relationshipType"] for relation in spdx["relationships"]}
    names = {package["name"]: relations[package["SPDXID"]] for package in spdx["packages"]}
    faults = [f"{package} is linked in and not listed as such" for package in linked_in(command) if names.get(package) != "STATIC_LINK"]
    faults += [f"{package} is compiled in and not listed" for package in sorted(COMPILED_IN - set(names))]
    faults += [f"there is no notice of {word}" for word in ("hiredis", "nlohmann", "toml", "CLI11", "fmtlib") if word.lower() not in licenses.lower()]
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(names)} packages: {len(faults)} faults")
    sys.exit(1 if faults else 0)


main()
