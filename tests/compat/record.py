#!/usr/bin/python3
"""record.py PROGRAM [FOLDER]: what this rlock leaves at a server in each situation, a file each in FOLDER (states/VERSION beside this file, with
the version of PROGRAM). A release does this once: what it left is never written again."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import lab
import situations

HERE = pathlib.Path(__file__).resolve().parent
AT_ONCE = 4  # situations, which mostly wait


def record(program, name):
    """The state of a situation."""
    situation = situations.ALL[name]
    with lab.Lab(program, situation.servers) as made:
        left = situation.make(made)
        now, servers = made.dump()
        shown = made.shown() if situation.shows else None
    return {"situation": situation.__doc__, "now": now, "made": left, "servers": servers, "shown": shown}


def write(program, folder):
    with concurrent.futures.ProcessPoolExecutor(AT_ONCE) as pool:
        states = {name: pool.submit(record, program, name) for name in situations.ALL}
    for name, state in states.items():
        text = json.dumps(state.result(), indent=1, ensure_ascii=False)
        if "\ufffd" in text:
            raise SystemExit(f"{name}: the server holds what is not UTF-8")
        (folder / f"{name}.json").write_text(text + "\n")


def main(program, folder=None):
    program = pathlib.Path(program).resolve()
    with tempfile.TemporaryDirectory() as built:
        library = os.environ["CLOCK_LIBRARY"] = f"{built}/shifted_clock.so"
        subprocess.run(["c++", "-shared", "-fPIC", "-o", library, HERE.parent / "support/shifted_clock.cpp"], check=True)
        with lab.Lab(program) as asked:
            version = asked.json("version")["version"]
        folder = pathlib.Path(folder) if folder else HERE / "states" / version
        if folder.exists():
            raise SystemExit(f"record.py: {folder} exists: what a release left is not written again")
        folder.mkdir(parents=True)
        write(program, folder)
    print(f"{len(situations.ALL)} states of rlock {version} in {folder}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
