"""Checks a built site: its links lead somewhere, no page asks a network, every public name of Python is described."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import esscher

# Attributes whose address a browser loads by itself.
LOADED = {
    ("audio", "src"), ("embed", "src"), ("iframe", "src"), ("image", "href"), ("img", "src"), ("img", "srcset"),
    ("input", "src"), ("link", "href"), ("object", "data"), ("script", "src"), ("source", "src"), ("source", "srcset"),
    ("track", "src"), ("use", "href"), ("video", "poster"), ("video", "src"),
}  # fmt: skip
# Modules whose names are described one by one.
MODULES = {"audit", "recording", "zoo"}
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
IN_STYLE = re.compile(r"(?:url\(\s*|@import\s+)[\"']?([^\"')\s]+)")


class PageReader(HTMLParser):
    """The anchors, links and loaded addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what a tag names, leads to and loads."""
        self._style = tag == "style"
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        relations = given.get("rel", "").split()
        is_address = tag == "link" and set(relations) & {"canonical", "next", "prev", "edit"}
        self.loaded += [given[name] for name in given if (tag, name) in LOADED and not is_address]
        self.loaded += IN_STYLE.findall(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        """Notes what a style loads."""
        if self._style:
            self.loaded += IN_STYLE.findall(data)

    def handle_endtag(self, tag: str) -> None:
        """Ends a style."""
        self._style = False


def main(site: Path) -> int:
    """Says everything that is wrong; the number of complaints."""
    pages = {}
    for file in sorted(site.rglob("*.html")):
        pages[file] = PageReader()
        pages[file].feed(file.read_text(encoding="utf-8"))
    if not pages:
        print(f"{site} has no pages", file=sys.stderr)
        return 1
    wrong = [*_links(site, pages), *_loaded(site, pages), *_names(pages)]
    for one in wrong:
        print(one, file=sys.stderr)
    links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {links} links, {len(esscher.__all__)} names of Python: {len(wrong)} complaints")
    return len(wrong)


def _links(site: Path, pages: dict[Path, PageReader]) -> Iterator[str]:
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            # By the standard of HTML `#top` is the beginning of any page.
            if parts.scheme or parts.netloc or link in ("", "#", "#top"):
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            where = f"{file.relative_to(site)}: {link}"
            if not target.is_file():
                yield f"{where}: there is no such file"
            elif target in pages and not _has(pages[target], unquote(parts.fragment)):
                yield f"{where}: the page has no such anchor"


def _has(page: PageReader, anchor: str) -> bool:
    # Material marks its own states by anchors that begin with two underscores.
    return not anchor or anchor.startswith("__") or anchor in page.anchors


def _loaded(site: Path, pages: dict[Path, PageReader]) -> Iterator[str]:
    for file, page in pages.items():
        yield from (f"{file.relative_to(site)} loads {one}" for one in page.loaded if ELSEWHERE.match(one))
    for file in sorted(site.rglob("*.css")):
        addresses = IN_STYLE.findall(file.read_text(encoding="utf-8"))
        yield from (f"{file.relative_to(site)} loads {one}" for one in addresses if ELSEWHERE.match(one))
    for file in sorted(site.rglob("*.svg")):
        addresses = re.findall(r"(?:xlink:)?href=\"([^\"]+)\"", file.read_text(encoding="utf-8"))
        yield from (f"{file.relative_to(site)} loads {one}" for one in addresses if ELSEWHERE.match(one))


def _names(pages: dict[Path, PageReader]) -> Iterator[str]:
    described = {anchor for page in pages.values() for anchor in page.anchors}
    public = {f"esscher.{name}" for name in esscher.__all__ if name not in MODULES}
    for module in sorted(MODULES):
        public |= {f"esscher.{module}.{name}" for name in getattr(esscher, module).__all__}
    for name in sorted(public - described):
        yield f"{name} is described on no page of docs/reference/python"


if __name__ == "__main__":
    sys.exit(bool(main(Path(sys.argv[1]).resolve())))
