#!/usr/bin/python3
"""sbom.py BUILD PROGRAM_NAME OUT, sbom.py --debian BUILD FOLDER, or sbom.py --notices BUILD FILE: an SPDX 2.3 document of what is in the rlock that was built in BUILD, a folder of ninja's.

What the linker opened, as it says itself (--trace), and the headers that the compilations of its objects read (ninja -t deps), each
with the Debian package that it is a file of.
A file of an unknown origin, or of a package whose licence is not listed here, is an error. Also writes OUT.licenses: the copyright
files of all that is compiled or linked in, which have to go with a copy of the program. With --debian only these go into a package:
FOLDER is its debian/, whose substvars get the sources that are built in (Static-Built-Using). With --notices only their copyright
files are written, to FILE.
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

# By source package; of the source that has several of them for the cross compiler, by package. What gcc's exception is about: a program may contain libstdc++ and libgcc under any licence.
LICENSES = {
    "cli11": "BSD-3-Clause",
    "fmtlib": "MIT",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "gcc-12-cross": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "gcc-13": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "gcc-14": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "glibc": "LGPL-2.1-or-later",
    "hiredis": "BSD-3-Clause",
    "libc6-dev-arm64-cross": "LGPL-2.1-or-later",
    "linux": "GPL-2.0-only WITH Linux-syscall-note",
    "linux-libc-dev-arm64-cross": "GPL-2.0-only WITH Linux-syscall-note",
    "nlohmann-json3": "MIT",
    "openssl": "Apache-2.0",
    "tomlplusplus": "MIT",
}


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def linked(build):
    """The files that the linker opened, and the options of the command."""
    command = output("ninja", "-t", "commands", "rlock", cwd=build).splitlines()[-1]
    command = re.sub(r"^: && | && :$", "", command)
    words = re.sub(r"-o src/\S+", "-o /dev/null -Wl,--trace", command)
    trace = output("sh", "-c", words, cwd=build)
    # An archive is named once for each member: /usr/lib/libx.a(member.o), or (/usr/lib/libx.a)member.o.
    files = {re.sub(r"^\(([^)]*)\).*|^([^()]+)\(.*", lambda match: match[1] or match[2], line) for line in trace.splitlines()}
    return {os.path.realpath(os.path.join(build, name)) for name in files if name}


def headers(build, objects):
    """Of the objects of the libraries that are linked."""
    wanted, found = False, set()
    for line in output("ninja", "-t", "deps", cwd=build).splitlines():
        if line and not line.startswith(" "):
            wanted = line.split(":")[0] in objects
        elif wanted and line.strip():
            found.add(os.path.realpath(os.path.join(build, line.strip())))
    return found


def objects_of_rlock(build):
    commands = output("ninja", "-t", "commands", "rlock", cwd=build)
    return set(re.findall(r" -o (\S+\.o)\b", commands))


def packages_of(paths):
    """The binary package of each; one below /usr may be recorded as it was before / and /usr became one."""
    names = {name: path for path in paths for name in (path, path.removeprefix("/usr"))}
    found = subprocess.run(["dpkg-query", "--search", *names], capture_output=True, text=True, check=False).stdout
    owners = {}
    for line in found.splitlines():
        package, _, name = line.partition(": ")
        if name in names and not line.startswith("diversion"):
            owners[names[name]] = package.split(",")[0].split(":")[0]
    for path in paths:
        if path not in owners:
            sys.exit(f"sbom.py: no package has {path}, which is in the program")
    return owners


def component(package, relation):
    fields = output("dpkg-query", "-W", "-f", "${source:Package}\t${source:Version}\t${Version}\n", package).splitlines()[0]
    source, source_version, version = fields.split("\t")
    declared = LICENSES.get(source) or LICENSES.get(package)
    if not declared:
        sys.exit(f"sbom.py: the licence of {source} is not listed in LICENSES; {package} is in the program")
    return {"package": package, "source": source, "source_version": source_version, "version": version, "relation": relation,
            "license": declared}


def components(build):
    """By package: what of it is in the program, or only beside it."""
    tree = pathlib.Path(cache(build, "CMAKE_HOME_DIRECTORY")).resolve()
    inside = (f"{pathlib.Path(build).resolve()}/", f"{tree}/")
    uses = {path: "CONTAINS" for path in headers(build, objects_of_rlock(build))}
    uses |= {path: "DYNAMIC_LINK" if ".so" in os.path.basename(path) else "STATIC_LINK" for path in linked(build)}
    uses = {path: use for path, use in uses.items() if path != "/dev/null" and not path.startswith(inside)}
    found = {}
    order = ["STATIC_LINK", "DYNAMIC_LINK", "CONTAINS"]
    for path, package in packages_of(sorted(uses)).items():
        found[package] = min(found.get(package, "CONTAINS"), uses[path], key=order.index)
    return [component(package, found[package]) for package in sorted(found)]


def cache(build, name):
    text = (pathlib.Path(build) / "CMakeCache.txt").read_text(encoding="utf-8")
    return re.search(rf"^{name}:\w+=(.*)$", text, re.MULTILINE)[1]


def spdx_package(part):
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", part["package"]),
        "name": part["package"],
        "versionInfo": part["version"],
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": part["license"],
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"built from Debian's source package {part['source']} {part['source_version']}",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{part['package']}@{part['version']}"}],
    }


def document(build, program, parts):
    version = cache(build, "CMAKE_PROJECT_VERSION")
    ours = {"SPDXID": "SPDXRef-rlock", "name": "rlock", "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "MIT", "licenseDeclared": "MIT", "copyrightText": "Copyright (c) 2026 The rlock authors",
            "packageFileName": program}
    packages = [ours] + [spdx_package(part) for part in parts]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-rlock"}]
    for part, package in zip(parts, packages[1:]):
        relations.append({"spdxElementId": "SPDXRef-rlock", "relationshipType": part["relation"], "relatedSpdxElement": package["SPDXID"]})
    digest = hashlib.sha256(json.dumps([packages, relations], sort_keys=True).encode()).hexdigest()
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": program,
            "documentNamespace": f"https://spdx.org/spdxdocs/{program}-{digest[:32]}",
            "creationInfo": {"created": created, "creators": ["Organization: The rlock authors", "Tool: packaging/sbom.py"]},
            "packages": packages, "relationships": relations}


def licenses(parts):
    """The notices of what is in the program, once for each source package."""
    texts = {}
    for part in parts:
        path = pathlib.Path(f"/usr/share/doc/{part['package']}/copyright")
        if part["relation"] != "DYNAMIC_LINK" and part["source"] != "linux" and path.exists():
            texts.setdefault(part["source"], path.read_text(encoding="utf-8", errors="replace"))
    # Those that Debian's copyright files only name.
    for name in sorted(set(re.findall(r"/usr/share/(common-licenses/[A-Za-z0-9-]+(?:\.[0-9]+)?)", "".join(texts.values())))):
        path = pathlib.Path("/usr/share") / name
        if path.exists():
            texts[name] = path.read_text(encoding="utf-8")
    return "".join(f"==== {source}\n\n{text}\n" for source, text in sorted(texts.items()))


def built_in(parts):
    """libc and OpenSSL are loaded at run time: of them the program has no more than what their headers define."""
    return [part for part in parts if part["relation"] != "DYNAMIC_LINK" and part["source"] not in ("glibc", "linux", "openssl")]


def write_notices(parts, path):
    texts = {part["source"]: pathlib.Path(f"/usr/share/doc/{part['package']}/copyright").read_text(encoding="utf-8") for part in parts}
    notices = "".join(f"==== {source}, a part of rlock\n\n{text}\n" for source, text in sorted(texts.items()))
    path.write_text(notices, encoding="utf-8")


def add_to_package(parts, folder):
    sources = sorted({f"{part['source']} (= {part['source_version']})" for part in parts})
    with open(folder / "rlock.substvars", "a", encoding="utf-8") as file:
        file.write(f"rlock:Static-Built-Using={', '.join(sources)}\n")
    write_notices(parts, folder / "rlock/usr/share/doc/rlock/built-in")


def main():
    if sys.argv[1] == "--debian":
        return add_to_package(built_in(components(sys.argv[2])), pathlib.Path(sys.argv[3]))
    if sys.argv[1] == "--notices":
        return write_notices(built_in(components(sys.argv[2])), pathlib.Path(sys.argv[3]))
    build, program, out = sys.argv[1:]
    parts = components(build)
    pathlib.Path(out).write_text(json.dumps(document(build, program, parts), indent=2) + "\n", encoding="utf-8")
    pathlib.Path(out + ".licenses").write_text(licenses(parts), encoding="utf-8")
    for part in parts:
        print(f"{part['relation']:12} {part['package']} {part['version']}")
    return None


main()
