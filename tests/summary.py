#!/usr/bin/python3
"""summary.py RESULTS BUILD [TEST...]: what ctest --output-junit wrote of a run in BUILD, in short: each test that was skipped, or skipped a
case, with its reason; each that was repeated; how to repeat each that failed; and a closing line with the counts. Fails if a test failed,
or was skipped that is not one of TEST, which this machine cannot run.
summary.py --total RESULTS...: the closing line for all of these. Fails if a test failed, or a run left no results.
"""
import os
import re
import sys
import xml.etree.ElementTree


def reason(case):
    lines = [line.strip() for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
    return next((line for line in lines if "skip" in line.lower() or "not found" in line), lines[-1] if lines else "no reason given")


def cases_skipped(output):
    """(case, reason) of each that bats or unittest left out."""
    yield from re.findall(r"^ok \d+ (.*) # skip ?(.*)$", output, re.MULTILINE)
    yield from re.findall(r"^(\w+) \([\w.]+\)(?:\n.*)? \.\.\. skipped ['\"](.*)['\"]$", output, re.MULTILINE)


def cases_of(results):
    return list(xml.etree.ElementTree.parse(results).getroot())


def names_of(cases, *states):
    return [case.get("name") for case in cases if case.get("status") in states]


def closing_line(cases, more_failed=0):
    failed, skipped = len(names_of(cases, "fail")), len(names_of(cases, "notrun", "disabled"))
    print(f"{len(cases) - failed - skipped} passed, {failed + more_failed} failed, {skipped} skipped")


def total(files):
    missing = [name for name in files if not os.path.exists(name)]
    for name in missing:
        print(f"no results: {name}")
    cases = [case for name in files if name not in missing for case in cases_of(name)]
    closing_line(cases, len(missing))
    return 1 if missing or names_of(cases, "fail") else 0


def main():
    if sys.argv[1] == "--total":
        return total(sys.argv[2:])
    results, build, *allowed = sys.argv[1:]
    cases = cases_of(results)
    skipped = {case.get("name"): reason(case) for case in cases if case.get("status") in ("notrun", "disabled")}
    for name, why in skipped.items():
        print(f"{'skipped' if name in allowed else 'skipped without need'}: {name}: {why}")
    for case in cases:
        output = case.findtext("system-out") or ""
        for name, why in cases_skipped(output):
            print(f"skipped in {case.get('name')}: {name}: {why}")
        for why in re.findall(r"^repeated: (.*)$", output, re.MULTILINE):
            print(f"repeated: {case.get('name')}: {why}")
    failed = names_of(cases, "fail")
    for name in failed:
        print(f"failed: {name}; to repeat it until it fails again: "
              f"ctest --test-dir {os.path.relpath(build)} -C nightly -R '^{name}$' --repeat until-fail:100 --output-on-failure")
    closing_line(cases)
    return 1 if failed or set(skipped) - set(allowed) else 0


sys.exit(main())
