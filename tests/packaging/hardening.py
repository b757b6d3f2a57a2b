#!/usr/bin/python3
"""hardening.py PROGRAM [compile_commands.json]: the program has what packaging/hardening.cmake asks for; so has each compilation of src.

What a stripped program still shows is read from it, the rest from the commands. --static: PROGRAM has libc in it, whose functions have no names any more.
"""
import json
import re
import subprocess
import sys

MACHINE_FLAGS = {"X86-64": ["-fcf-protection=full"], "AArch64": ["-mbranch-protection=standard"]}
FLAGS = ["-fstack-protector-strong", "-fstack-clash-protection", "-ftrivial-auto-var-init=zero", "-D_GLIBCXX_ASSERTIONS"]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}).stdout


def machine_of(program):
    return re.search(r"Machine:.*?(\S+)$", output("readelf", "--file-header", program), re.MULTILINE)[1]


def disassembly(program):
    other = machine_of(program) == "AArch64" and output("uname", "-m").strip() != "aarch64"
    return output("aarch64-linux-gnu-objdump" if other else "objdump", "--disassemble", "--no-show-raw-insn", program)


def layout_faults(program):
    header = output("readelf", "--wide", "--file-header", "--program-headers", "--dynamic", program)
    faults = []
    if not re.search(r"FLAGS_1.*\bPIE\b", header):
        faults.append("is no PIE")
    if "GNU_RELRO" not in header:
        faults.append("has no RELRO segment")
    if not re.search(r"BIND_NOW|FLAGS_1.*\bNOW\b", header):
        faults.append("does not bind at its start (-z now)")
    if re.search(r"GNU_STACK.*\bRWE\b", header):
        faults.append("has an executable stack")
    if "TEXTREL" in header:
        faults.append("relocates its code")
    if re.search(r"R(UN)?PATH", header):
        faults.append("has a search path for libraries")
    return faults


def main_is_a_branch_target(program, code):
    """_start hands the address of main(), whose name may be stripped, to the C library in rdi."""
    entry = int(re.search(r"Entry point address:\s+0x([0-9a-f]+)", output("readelf", "--file-header", program))[1], 16)
    start = code[re.search(rf"^ *{entry:x}:", code, re.MULTILINE).start():]
    main = re.search(r"lea .*%rdi\s+# (?:0x)?([0-9a-f]+)|mov +\$0x([0-9a-f]+),%[re]di", start)
    address = main[1] or main[2]
    return re.search(rf"^ *{address}:\s+endbr64", code, re.MULTILINE) is not None


def code_faults(program, static):
    faults = []
    code = disassembly(program)
    if not static:
        # Some are in the libraries that are linked in, whatever the flags.
        if len(re.findall(r"\bcall .*<__stack_chk_fail@plt>", code)) < 100:
            faults.append("has no stack protector")
        if not re.search(r"\bcall .*<__(read|memcpy|snprintf|vsnprintf)_chk@plt>", code):
            faults.append("has no function of _FORTIFY_SOURCE")
    if "elf64-x86-64" in code:
        # A page is touched before the stack grows past it.
        if not re.search(r"\bor[lq]\s+\$0x0,(0x[0-9a-f]+)?\(%rsp\)", code):
            faults.append("has no stack clash protection")
        if not main_is_a_branch_target(program, code):
            faults.append("has no CET: main() does not begin with endbr64")
    # Debian's archives have none: each is rlock's own.
    if "elf64-littleaarch64" in code and len(re.findall(r"\bpaciasp\b", code)) < 1000:
        faults.append("has no branch protection: its functions do not sign their return addresses")
    if b"__n < this->size()" not in open(program, "rb").read():
        faults.append("has no assertions of libstdc++")
    return faults


def command_faults(commands, machine):
    faults = []
    ours = [entry for entry in json.load(open(commands, encoding="utf-8")) if " -o src/" in entry["command"]]
    wanted = FLAGS + MACHINE_FLAGS.get(machine, [])
    for entry in ours:
        words = entry["command"].split()
        faults += [f"{entry['file']} is compiled without {flag}" for flag in wanted if flag not in words]
        defined = [word for word in words if re.match(r"-[DU]_FORTIFY_SOURCE", word)]
        if not defined or not re.fullmatch(r"-D_FORTIFY_SOURCE=[23]", defined[-1]):
            faults.append(f"{entry['file']} is compiled without _FORTIFY_SOURCE")
    return faults if ours else [f"{commands} has no compilation of src"]


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--static"]
    static = "--static" in sys.argv
    program = arguments[0]
    faults = [f"{program} {fault}" for fault in layout_faults(program) + code_faults(program, static)]
    for commands in arguments[1:]:
        faults += command_faults(commands, machine_of(program))
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{program}: {len(faults)} faults")
    sys.exit(1 if faults else 0)


main()
