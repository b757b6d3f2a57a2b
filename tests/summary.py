#!/usr/bin/python3
"""summary.py RESULTS [TEST...]: what ctest --output-junit wrote, in short: each test that was skipped, or skipped a case, with its
reason, and a closing line with the counts. Fails if a test failed, or was skipped that is not one of TEST, which this machine cannot run.
"""
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


def main():
    results, *allowed = sys.argv[1:]
    cases = list(xml.etree.ElementTree.parse(results).getroot())
    skipped = {case.get("name"): reason(case) for case in cases if case.get("status") in ("notrun", "disabled")}
    failed = [case.get("name") for case in cases if case.get("status") == "fail"]
    for name, why in skipped.items():
        print(f"{'skipped' if name in allowed else 'skipped without need'}: {name}: {why}")
    for case in cases:
        for name, why in cases_skipped(case.findtext("system-out") or ""):
            print(f"skipped in {case.get('name')}: {name}: {why}")
    print(f"{len(cases) - len(failed) - len(skipped)} passed, {len(failed)} failed, {len(skipped)} skipped")
    sys.exit(1 if failed or set(skipped) - set(allowed) else 0)


main()
