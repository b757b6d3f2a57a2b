#!/usr/bin/env python3
"""runner.py FILE [NAME=VALUE…]: runs the steps of a GitHub action or of a GitLab component with these inputs, as its runner does, and
exits with the code of the one that fails. The last step takes the place of this process. With --script, prints their text instead.

An input of GitHub's is the value of a variable. GitLab puts it into the text of the file, before that is YAML.
"""
import os
import re
import subprocess
import sys

import yaml


def fill(given, declared):
    """The value of each input."""
    unknown = set(given) - set(declared)
    missing = [name for name in declared if name not in given and "default" not in declared[name]]
    assert not unknown and not missing, f"unknown inputs: {unknown}; missing inputs: {missing}"
    return {name: given.get(name, spec.get("default")) for name, spec in declared.items()}


def github(text, given):
    action = yaml.load(text, Loader=yaml.BaseLoader)
    values = fill(given, action["inputs"])
    steps, used = [], set()
    for step in action["runs"]["steps"]:
        names = {variable: re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1] for variable, value in step["env"].items()}
        used.update(names.values())
        if step.get("if", "inputs.name != ''") == "inputs.name != ''" and (values["name"] or "if" not in step):
            steps.append((["sh", "-e", "-c", step["run"]], {variable: values[name] for variable, name in names.items()}))
        assert step["shell"] == "sh" and "${{" not in step["run"], step
    assert used == set(values), f"declared, but not used: {set(values) - used}"
    return steps


def gitlab(text, given):
    header, body = text.split("\n---\n")
    declared = yaml.load(header, Loader=yaml.BaseLoader)["spec"]["inputs"]
    values = fill(given, declared)
    for name, value in values.items():
        # RE2's notation of a code point, and of the end of the text.
        regex = re.sub(r"\\x\{([0-9a-f]+)\}", lambda match: re.escape(chr(int(match[1], 16))), declared[name]["regex"]).replace(r"\z", r"\Z")
        assert re.search(regex, value), f"the input {name} does not fit its regex"
    body = re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda match: values[match[1]], body)
    job = yaml.load(body, Loader=yaml.BaseLoader)[values["job"]]
    variables = {}
    for name, variable in job["variables"].items():
        expand = variable.get("expand", "true") == "true"
        variables[name] = re.sub(r"\$(\w+)", lambda match: os.environ.get(match[1], ""), variable["value"]) if expand else variable["value"]
    return [(["bash", "-eo", "pipefail", "-c", "".join(job["script"])], variables)]


def main():
    arguments = [word for word in sys.argv[1:] if word != "--script"]
    with open(arguments[0], encoding="utf-8") as file:
        text = file.read()
    given = dict(word.split("=", 1) for word in arguments[1:])
    steps = gitlab(text, given) if "\nspec:\n" in text else github(text, given)
    if "--script" in sys.argv:
        print("".join(command[-1] for command, _ in steps), end="")
        return
    for number, (command, variables) in enumerate(steps):
        env = os.environ | variables
        if os.path.exists(env.get("GITHUB_PATH", "")):
            with open(env["GITHUB_PATH"], encoding="utf-8") as file:
                env["PATH"] = ":".join(file.read().split("\n")[:-1] + [env["PATH"]])
        if number == len(steps) - 1:
            os.execvpe(command[0], command, env)
        code = subprocess.call(command, env=env)
        if code:
            sys.exit(code)


main()
