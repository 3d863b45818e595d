"""Lists what a wheel holds; refuses one that is large, lacks licences or types, or needs more than its name says."""

import pathlib
import re
import subprocess
import sys
import zipfile

# Without symbols and debug information a wheel has about 13 MB.
LARGEST = 40e6

[wheel] = map(pathlib.Path, sys.argv[1:])
entries = zipfile.ZipFile(wheel).infolist()
for entry in entries:
    print(f"{entry.file_size:12,}  {entry.filename}")
size = wheel.stat().st_size
print(f"{size:12,}  {wheel.name}")

mistakes = []
names = [entry.filename for entry in entries]
for wanted in [
    "licenses/LICENSE-MIT",
    "licenses/LICENSE-APACHE",
    "esscher/_native.pyi",
    "esscher/py.typed",
    "esscher/LICENSES-OF-DEPENDENCIES",
    "esscher/_native.abi3.so",
]:
    if not any(name.endswith(wanted) for name in names):
        mistakes.append(f"it holds no {wanted}")
if size > LARGEST:
    mistakes.append(f"it has {size / 1e6:.0f} MB, {LARGEST / 1e6:.0f} are allowed: are there symbols in the module?")
if "-abi3-" not in wheel.name:
    mistakes.append("it is for one version of Python; expected abi3")

if sys.platform == "linux":
    # auditwheel looks at the symbols of glibc that the module asks for.
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r'platform tag:\s*"(\w+)"', shown)
    needed = re.match(r"manylinux_(\d+)_(\d+)_", found[1]) if found else None
    promised = re.search(r"manylinux_(\d+)_(\d+)_", wheel.name)
    if needed is None or promised is None:
        mistakes.append(f"its tag is no manylinux; auditwheel says: {' '.join(shown.split())}")
    elif tuple(map(int, needed.groups())) > tuple(map(int, promised.groups())):
        mistakes.append(f"its name says glibc {promised[1]}.{promised[2]}, its symbols need {needed[1]}.{needed[2]}")
    else:
        print(f"auditwheel: runs with glibc {needed[1]}.{needed[2]} or newer")

if mistakes:
    sys.exit("".join(f"{wheel.name}: {mistake}\n" for mistake in mistakes))
