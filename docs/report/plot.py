#!/usr/bin/python3
"""Draws the plots of docs/report, and writes its tables into numbers.md, from the numbers in docs/report/data: plot.py"""

import json
import math
import pathlib
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
WIDTH, BAR, LEFT = 720, 20, 330
STYLE = ("text{font:12px sans-serif;fill:#222}.title{font-weight:bold;font-size:14px}.bar{fill:#3b6ea5}.line{fill:none;"
         "stroke:#3b6ea5;stroke-width:2}.axis{stroke:#999}")


def table(name):
    """The rows of a file of tab-separated values, below its comment and its head."""
    lines = [line for line in (HERE / "data" / name).read_text(encoding="ascii").splitlines() if line[:1] != "#"]
    return [dict(zip(lines[0].split("\t"), line.split("\t"))) for line in lines[1:]]


def kept(name):
    return json.loads((HERE / "data" / name).read_text(encoding="ascii"))


def rows_of(name):
    return kept(name)["rows"]


def text(x, y, words, more=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{escape(words)}</text>'


def save(name, height, parts, title):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">'
    parts = [head, f"<style>{STYLE}</style>", f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
             text(10, 20, title, 'class="title"'), *parts, "</svg>"]
    (HERE / name).write_text("\n".join(parts) + "\n", encoding="utf-8")


def shown(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def bars(name, title, values):
    """Horizontal bars: (label, value or None)."""
    most = max(value or 0 for _, value in values)
    parts = []
    for number, (label, value) in enumerate(values):
        y = 34 + number * BAR
        parts.append(text(LEFT - 8, y + 14, label, 'text-anchor="end"'))
        if not value:
            parts.append(text(LEFT + 4, y + 14, "0" if value == 0 else "—"))
            continue
        width = max(2.0, value / most * (WIDTH - LEFT - 80))
        parts.append(f'<rect class="bar" x="{LEFT}" y="{y + 3}" width="{width:.0f}" height="{BAR - 6}"/>')
        parts.append(text(LEFT + width + 6, y + 14, shown(value)))
    save(name, 44 + len(values) * BAR, parts, title)


def line(name, title, across, points):
    """A line through (label, x, y); x on a logarithmic scale."""
    height, bottom, left = 300, 250, 60
    least, most = math.log(points[0][1]), math.log(points[-1][1])
    top = max(y for _, _, y in points) or 1
    places = [(left + (math.log(x) - least) / (most - least) * (WIDTH - left - 60), bottom - y / top * 190)
              for _, x, y in points]
    parts = [f'<path class="axis" d="M{left},{bottom}H{WIDTH - 30}"/>', text(left, bottom + 40, across)]
    parts.append('<path class="line" d="M' + "L".join(f"{x:.0f},{y:.0f}" for x, y in places) + '"/>')
    for (label, _, value), (x, y) in zip(points, places):
        parts += [text(x, bottom + 18, label, 'text-anchor="middle"'), text(x, y - 8, shown(value), 'text-anchor="middle"'),
                  f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" class="bar"/>']
    save(name, height, parts, title)


def as_table(rows):
    out = ["| " + " | ".join(name.replace("_", " ") for name in rows[0]) + " |", "|" + "---|" * len(rows[0])]
    return out + ["| " + " | ".join("—" if value is None else str(value) for value in row.values()) + " |" for row in rows]


def section(title, command, rows):
    return [f"## {title}", "", f"`{command}`", "", *as_table(rows), ""]


def comment(name):
    return (HERE / "data" / name).read_text(encoding="ascii").splitlines()[0][2:]


def rates():
    return [{"world": row["world"], "faults": row["faults"], "commands_that_began_beside_another": row["overlaps"],
             "of_so_many_commands": row["commands"], "in_percent": f"{100 * int(row['overlaps']) / int(row['commands']):.2f}"}
            for row in table("worlds.tsv") if row["world"] in ("freezes", "fail_overs", "losses", "once_losses")]


def numbers():
    """Every number as it was measured, with its command."""
    out = ["# Numbers", "", "`docs/report/plot.py` writes this page; `README.md` beside it explains it. *load*: processes that wanted "
           "a processor, for each one that there was, in the minute before the end.", ""]
    for name, title in (("worlds", "Simulated worlds"), ("drift", "Clocks beyond the bound"), ("mutants", "Mutants")):
        out += section(title, comment(f"{name}.tsv"), table(f"{name}.tsv"))
    out += section("Rates", "of the worlds above: what rlock does not withstand", rates())
    out += ["## Years", "", *("    " + line for line in (HERE / "data" / "years.txt").read_text(encoding="ascii").splitlines()), ""]
    for name in ("crowd", "queue", "peers"):
        one = kept(f"{name}.json")
        out += section(name.capitalize(), f"{one['command']}, {one['date']}, load {one['load']}", one["rows"])
    for name in ("names", "restart", "many", "rate"):
        one = kept(f"{name}.json")
        values = {key: value for key, value in one.items() if key not in ("command", "date", "load")}
        out += section(name.capitalize(), f"{one['command']}, {one['date']}, load {one['load']}", [values])
    soak = table("soak.tsv")
    first_and_last = [row for before, row, after in zip([None, *soak], soak, [*soak[1:], None])
                      if before is None or after is None or before["seed"] != row["seed"] or after["seed"] != row["seed"]]
    out += section("Soak", "tests/scale/soak.py, the first and the last look of each piece", first_and_last)
    (HERE / "numbers.md").write_text("\n".join(out).rstrip() + "\n", encoding="utf-8")


def main():
    numbers()
    bars("mutants.svg", "Seeds until a mutant is noticed, on average",
         [(row["mutant"], float(row["seeds"])) for row in table("mutants.tsv")])
    line("drift.svg", "Commands that began beside another, of 60 histories, by how far each clock may be off",
         "each clock is off by at most so many percent; the bound is 0.5, so that two differ by less than 1",
         [(f"{int(row['drift_ppm']) / 10_000:g}", int(row["drift_ppm"]), int(row["overlaps"])) for row in table("drift.tsv")])
    queue = rows_of("queue.json")
    line("queue.svg", "µs at the server for a hand-over, by the length of the queue", "waiters",
         [(f"{row['waiters']:,}", row["waiters"], row["us_a_hand_over"]) for row in queue])
    peers = rows_of("peers.json")
    for name, title in (("hand_over_p50_ms", "ms from the end of a command to the beginning of the next, of ten (median)"),
                        ("commands_a_waiting_minute", "Commands that a waiter sends to the server in a minute")):
        bars(f"{name}.svg", title, [(row["peer"], row[name]) for row in peers])


main()
