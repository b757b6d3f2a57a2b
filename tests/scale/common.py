"""Where the numbers go, and what all measurements share."""

import datetime
import json
import os
import pathlib
import secrets
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "bench"))
from measuring import Program, Scripts, Server, free_ports  # noqa: E402, F401

DATA = TOP / "docs" / "report" / "data"
RLOCK = os.environ.get("RLOCK", str(TOP / "build" / "release" / "src" / "rlock"))


def fresh_owner():
    return secrets.token_hex(16)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def busy():
    """What else this machine had to do: the load of the last minute for each of its processors."""
    return round(os.getloadavg()[0] / os.cpu_count(), 1)


def record(name, values):
    """Prints the numbers, and keeps them for docs/report."""
    command = " ".join(["tests/scale/" + os.path.basename(sys.argv[0]), *sys.argv[1:]])
    kept = {"command": command, "date": datetime.date.today().isoformat(), "load": busy(), **values}
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / f"{name}.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="ascii")
    print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in values.items() if not isinstance(value, list)))
