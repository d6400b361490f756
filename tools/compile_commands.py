#!/usr/bin/env python3
"""Writes compile_commands.json, which tells clangd how each source is compiled.

Bazel says what it would run; nothing is compiled. Run this again when BUILD files
change. It needs python3 alone, which Debian's package of Bazel depends on.
"""
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Options of g++ that clang does not know.
UNKNOWN_TO_CLANG = {"-fno-canonical-system-headers", "-Wno-free-nonheap-object"}
# Each names a file that a build writes.
OUTPUTS = {"-o", "-MF"}


def bazel(*arguments):
    command = ["./bazelw", *arguments, "--noshow_progress"]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout


def actions():
    # The targets by name: aquery's //... leaves out those that are tagged `manual`.
    targets = bazel("query", 'kind("cc_(library|binary|test) rule", //...)').split()
    query = 'mnemonic("CppCompile", {})'.format(" + ".join(targets))
    return json.loads(bazel("aquery", query, "--output=jsonproto"))["actions"]


def options(arguments):
    """The command without what only a build needs."""
    words = iter(arguments)
    for word in words:
        if word in OUTPUTS:
            next(words)
        elif word not in UNKNOWN_TO_CLANG and word != "-MD":
            yield word


def main():
    entries = {}  # by source: Bazel's paths are relative to the workspace's root, too
    for action in actions():
        arguments = list(options(action["arguments"]))
        source = arguments[arguments.index("-c") + 1]
        entries[source] = {"directory": ROOT, "file": source, "arguments": arguments}
    with open(os.path.join(ROOT, "compile_commands.json"), "w") as file:
        json.dump([entries[source] for source in sorted(entries)], file, indent=1)
    print("compile_commands.json: {} sources".format(len(entries)))


main()
