#!/usr/bin/python3
"""Draws the plots of docs/report, and writes its tables into numbers.md, from the numbers in docs/report/data: plot.py"""

import json
import math
import pathlib
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
WIDTH, BAR, LEFT = 720, 20, 330
STYLE = ("text{font:12px sans-serif;fill:#222}.title{font-weight:bold;font-size:14px}.bar{fill:#3b6ea5}.line{fill:none;"
         "stroke:#3b6ea5;stroke-width:2}.axis{stroke:#999}.grid{stroke:#ddd}")
# What a section shows, and how its columns are called. A column that is not here is called by its name.
TEXTS = {
    "Simulated worlds": "The table shows what the simulation counted in each world. *done*: runs that found their work done. *overlaps*: commands that began while "
                        "another one ran under the same exclusive lock. *violations*: broken promises. Overlaps count only in worlds in which rlock promises to prevent them.",
    "Clocks beyond the bound": "The table shows the same counts for clocks that are too fast or too slow. rlock promises no overlap up to a drift of 5,000 ppm for each clock.",
    "Mutants": "Each mutant leaves out one rule. The table shows what the simulation then detected, and in how many seeds on average.",
    "Rates": "The table lists the worlds above that break a condition.",
    "Years": "The simulation ran a thousand hosts with daily jobs, for 20 days with each seed.",
    "Crowd": "Real processes waited for one lock.",
    "Queue": "The table shows what the scripts take for a queue of each length, without processes.",
    "Outages": "Ten runs with the default lease met each outage, which began at different moments between two renewals.",
    "Peers": "The table shows the median of a run of `true` without contention.",
    "Peers and their waiters": "The waiters of one lock and the server were on one machine.",
    "Peers and faults": "The holder had a lease of 10 s, and met a fault three seconds after its command began.",
    "Names": "The locks of many names were all held, then all idle, and then `status` listed them.",
    "Restart": "The server restarted while processes waited for one lock.",
    "Many": "Many locks had waiters at the same time.",
    "Rate": "50 runs at a time started, without contention.",
    "Soak": "Runs of every kind contended for 200 locks on three servers, alone and as a quorum, with mixed faults. The columns of the servers "
            "are sums, and an overlap is a command that found another at work. The first row of each piece shows the state after three minutes, "
            "when every part has been used, and the second row the state at the end. The machine had other work at the same time.",
}
COLUMNS = {
    "drift_ppm": "drift in ppm", "host_years": "host-years", "noticed": "detected as", "seeds": "seeds",
    "commands_that_overlapped_another": "overlaps", "of_so_many_commands": "commands", "in_percent": "percent",
    "hand_over_p50_ms": "hand-over, median, ms", "hand_over_p99_ms": "hand-over, p99, ms", "hand_overs": "hand-overs",
    "private_kb": "private kB", "resident_kb": "resident kB", "resident_kb_of_a_waiter": "resident kB of a waiter",
    "server_bytes_a_waiter": "server bytes per waiter", "bytes_a_waiter": "bytes per waiter", "waiting_cpu_share": "server CPU share while they wait",
    "server_us_a_run": "server µs per run", "scripts_a_run": "scripts per run", "us_to_join": "µs to join",
    "us_a_heartbeat": "µs per heartbeat", "us_a_hand_over": "µs per hand-over", "first_renewal_after_s": "first renewal after, s",
    "whole_run_ms": "whole run, ms", "server_us_a_second_of_waiting": "server µs per second of waiting",
    "commands_a_waiting_minute": "commands per minute of waiting", "next_command_after_s": "next command after, s",
    "at_the_same_time": "overlap", "first_command_ended_after_s": "first command ended after, s", "waiter_gave_up_after_s": "waiter gave up after, s",
    "bytes_a_held_name": "bytes per held name", "bytes_an_idle_name": "bytes per idle name", "us_an_acquire": "µs per acquire",
    "us_a_release": "µs per release", "status_seconds": "status, s", "others_wait_ms": "others wait at most, ms",
    "status_all_seconds": "status --all, s", "others_wait_all_ms": "others wait at most, ms", "most_commands_a_second": "most commands per second",
    "server_cpu_share": "server CPU share", "kept_their_places": "kept their positions", "waiters_each": "waiters of each",
    "runs_a_second": "runs per second", "runs_a_minute": "runs per minute", "us_in_scripts_a_run": "µs in scripts per run",
    "server_cpu_us_a_run": "server µs per run", "runs_a_second_of_a_server_core": "runs per second of a server core",
    "endless_keys": "keys without expiry", "servers_kb": "servers kB", "holder_kb": "holder kB", "waiter_kb": "waiter kB", "voter_kb": "voter kB",
    "watch_kb": "watch kB",
}
COLOURS = ("#3b6ea5", "#c0504d", "#5b8c3a", "#8064a2", "#d98a1f", "#2a9d9d", "#777777", "#b0478f")


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
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


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
        parts += [text(x, bottom + 18, label, 'text-anchor="middle"'), text(x - 4, y - 8, shown(value), 'text-anchor="end"'),
                  f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" class="bar"/>']
    save(name, height, parts, title)


def spread(places, least):
    """The same heights, moved apart so that labels there do not cover each other; their order remains."""
    order, moved = sorted(range(len(places)), key=places.__getitem__), list(places)
    for before, after in zip(order, order[1:]):
        moved[after] = max(moved[after], moved[before] + least)
    return moved


def lines(name, title, across, series):
    """Lines of {label: [(x, y)]}, both axes logarithmic; each has its label at its right end."""
    height, top, bottom, left, right = 380, 44, 320, 70, WIDTH - 230
    points = [point for line in series.values() for point in line]
    (low, high), (first, last) = ((min(axis), max(axis)) for axis in ([y for _, y in points], [x for x, _ in points]))
    low, high = math.floor(math.log10(low)), math.ceil(math.log10(high))

    def place(x, y):
        return (left + math.log(x / first) / math.log(last / first) * (right - left),
                bottom - (math.log10(y) - low) / (high - low) * (bottom - top))
    parts = [text(left, bottom + 40, across)]
    for power in range(low, high + 1):
        y = place(first, 10**power)[1]
        parts += [f'<path class="grid" d="M{left},{y:.0f}H{right}"/>', text(left - 8, y + 4, f"{10**power:,}", 'text-anchor="end"')]
    for x in sorted({x for x, _ in points}):
        parts.append(text(place(x, 10**low)[0], bottom + 18, f"{x:,}", 'text-anchor="middle"'))
    ends = spread([place(*line[-1])[1] for line in series.values()], 15)
    for (label, line), colour, end in zip(series.items(), COLOURS, ends):
        path = "L".join("{:.0f},{:.0f}".format(*place(*point)) for point in line)
        parts += [f'<path fill="none" stroke="{colour}" stroke-width="2" d="M{path}"/>',
                  f'<path stroke="{colour}" d="M{right + 2},{place(*line[-1])[1]:.0f}L{right + 10},{end:.0f}"/>',
                  text(right + 14, end + 4, f"{label}: {shown(line[-1][1])}", f'style="fill:{colour}"')]
    save(name, height, parts, title)


def cell(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "—" if value is None else f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def as_table(rows):
    out = ["| " + " | ".join(COLUMNS.get(name, name.replace("_", " ")) for name in rows[0]) + " |", "|" + "---|" * len(rows[0])]
    return out + ["| " + " | ".join(map(cell, row.values())) + " |" for row in rows]


def section(title, command, rows):
    return [f"## {title}", "", TEXTS[title], "", f"`{command}`", "", *as_table(rows), ""]


def comment(name):
    return (HERE / "data" / name).read_text(encoding="ascii").splitlines()[0][2:]


def of(one):
    speed = f", true {one['process_ms']} ms" if "process_ms" in one else ""
    return f"{one['command']}, commit {one['commit']}, {one['date']}, load {one['load']}{speed}"


def rates():
    return [{"world": row["world"], "faults": row["faults"], "commands_that_overlapped_another": row["overlaps"],
             "of_so_many_commands": row["commands"], "in_percent": f"{100 * int(row['overlaps']) / int(row['commands']):.2f}"}
            for row in table("worlds.tsv") if row["world"] in ("freezes", "fail_overs", "losses", "once_losses", "confirmed", "confirmed --replicas 0")]


def early_and_last(soak):
    pieces = {}
    for row in soak:
        if int(row["second"]) >= 180:
            pieces.setdefault(row["seed"], []).append(row)
    return [row for piece in pieces.values() for row in (piece[0], piece[-1])]


def numbers():
    """Every number as it was measured, with its command."""
    out = ["# Numbers", "", "The numbers behind the [report](README.md), which draws the conclusions. `docs/report/plot.py` writes this page. Under each "
           "heading stand the command that measured the numbers, the commit and the date. *load* is the number of processes for each processor that "
           "were ready to run in the minute before. *true* is the time that the machine takes to run the command `true`.", ""]
    for name, title in (("worlds", "Simulated worlds"), ("drift", "Clocks beyond the bound"), ("mutants", "Mutants")):
        out += section(title, comment(f"{name}.tsv"), table(f"{name}.tsv"))
    out += section("Rates", comment("worlds.tsv"), rates())
    out += ["## Years", "", TEXTS["Years"], "", *("    " + line for line in (HERE / "data" / "years.txt").read_text(encoding="ascii").splitlines()), ""]
    for name in ("crowd", "queue"):
        one = kept(f"{name}.json")
        out += section(name.capitalize(), of(one), one["rows"])
    outages = kept("outages.json")
    out += section("Outages", of(outages), outages["rows"])
    peers = kept("peers.json")
    for part, title in (("rows", "Peers"), ("waiters", "Peers and their waiters"), ("faults", "Peers and faults")):
        out += section(title, of(peers), peers[part])
    rate = kept("rate.json")
    out += section("Rate", of(rate), rate["rows"])
    for name in ("names", "restart", "many"):
        one = kept(f"{name}.json")
        values = {key: value for key, value in one.items() if key not in ("command", "commit", "date", "load", "process_ms")}
        out += section(name.capitalize(), of(one), [values])
    soak = table("soak.tsv")
    out += section("Soak", "tests/bench/soak.py", early_and_last(soak))
    (HERE / "numbers.md").write_text("\n".join(out).rstrip() + "\n", encoding="utf-8")


def by_peer(rows, name):
    """{peer: [(waiters, value)]} of those that have a server."""
    series = {}
    for row in rows:
        if row[name]:
            series.setdefault(row["peer"], []).append((row["waiters"], row[name]))
    return series


def main():
    numbers()
    bars("mutants.svg", "Seeds until a mutant is detected, on average",
         [(row["mutant"], float(row["seeds"])) for row in table("mutants.tsv")])
    line("drift.svg", "Commands that overlapped another in 60 histories, by the drift",
         "each clock is off by at most so many percent; the bound is 0.5, so that two differ by less than 1",
         [(f"{int(row['drift_ppm']) / 10_000:g}", int(row["drift_ppm"]), int(row["overlaps"])) for row in table("drift.tsv")])
    queue = rows_of("queue.json")
    line("queue.svg", "µs at the server for a hand-over, by the length of the queue", "waiters",
         [(f"{row['waiters']:,}", row["waiters"], row["us_a_hand_over"]) for row in queue])
    peers = kept("peers.json")
    bars("whole_run_ms.svg", "ms that a run of true(1) takes without contention (median)",
         [(row["peer"], row["whole_run_ms"]) for row in peers["rows"]])
    waiters = peers["waiters"]
    for name, title in (("hand_over_p50_ms", "ms from the end of a command to the beginning of the next, of ten (median)"),
                        ("commands_a_waiting_minute", "Commands that each of ten waiters sends to the server in a minute")):
        bars(f"{name}.svg", title, [(row["peer"], row[name]) for row in waiters if row["waiters"] == 10])
    for name, title in (("server_us_a_run", "µs of the server's processors for each run, while so many wait"),
                        ("server_us_a_second_of_waiting", "µs of the server's processors in each second in which so many wait")):
        lines(f"{name}.svg", title, "waiters", by_peer(waiters, name))


main()
