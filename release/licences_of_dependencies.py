"""Prints the licence texts of every crate that is compiled into a package of the workspace, each text once."""

import collections
import json
import pathlib
import subprocess
import sys

host = next(
    line.removeprefix("host: ")
    for line in subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout.splitlines()
    if line.startswith("host: ")
)
command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host]
metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
edges = {
    node["id"]: [
        dependency["pkg"]
        for dependency in node["deps"]
        if any(kind["kind"] is None for kind in dependency["dep_kinds"])
    ]
    for node in metadata["resolve"]["nodes"]
}

# What is reached through ordinary dependencies, tests and build scripts left out.
waiting = [name for name, package in packages.items() if package["name"] == sys.argv[1] and package["source"] is None]
reached: set[str] = set()
while waiting:
    package = waiting.pop()
    if package not in reached:
        reached.add(package)
        waiting += edges[package]

texts = collections.defaultdict(list)
for package in sorted((packages[name] for name in reached), key=lambda package: (package["name"], package["version"])):
    if package["source"] is None:
        continue
    who = f"{package['name']} {package['version']} ({package['license']})"
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(
        file
        for file in folder.iterdir()
        if file.is_file() and file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"))
    )
    for file in files:
        texts[file.read_text(errors="replace").strip()].append(who)
    if not files:
        texts["Its package holds no text; the licence is the one it names."].append(who)

print("Esscher is compiled with the crates below. Each text stands after the crates that carry it.")
for text, crates in sorted(texts.items(), key=lambda pair: pair[1]):
    print("\n" + "=" * 100 + "\n" + "\n".join(dict.fromkeys(crates)) + "\n" + "-" * 100 + "\n" + text)
