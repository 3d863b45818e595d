"""Packs a folder into a .tar.gz whose bytes depend on its files and SOURCE_DATE_EPOCH alone: FOLDER ARCHIVE."""

import gzip
import os
import pathlib
import sys
import tarfile


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without owner, and as old as the commit."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


folder, archive = map(pathlib.Path, sys.argv[1:])
with (
    archive.open("wb") as file,
    gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as compressed,
    tarfile.open(fileobj=compressed, mode="w") as tar,
):
    for path in [folder, *sorted(folder.rglob("*"))]:
        tar.add(path, arcname=path.relative_to(folder.parent), recursive=False, filter=anonymous)
