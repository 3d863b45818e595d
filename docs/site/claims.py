"""The page of the papers' claims: the program judges committed results anew, the page shows what it found."""

from __future__ import annotations

import html
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from drawings import themed
from program import names, told

RESULTS = Path(__file__).parents[1] / "papers" / "results"
# Computed at every build, in a fraction of a second: `esscher reproduce` wants one to measure, and reads the others.
QUICKEST = "gaussian-lemma"
SIGNS = {"holds": "✓", "FAILS": "✗", "not measurable here": "?"}
CLASSES = {"holds": "holds", "FAILS": "fails", "not measurable here": "undecided"}


@dataclass
class Claim:
    """What the report says of a claim."""

    name: str
    title: str
    verdict: str
    lead: str
    statement: str
    formula: str
    facts: dict[str, str]
    figure: str


def judged(work: Path) -> tuple[list[Claim], str]:
    """Every claim, and the whole report; ``work`` is a folder that is made anew."""
    shutil.rmtree(work, ignore_errors=True)
    leave = shutil.ignore_patterns(QUICKEST)
    shutil.copytree(RESULTS, work / "reproduce", ignore=leave)
    said = told("reproduce", "--only", QUICKEST, "--out", str(work))
    found = {one["claim"]: one["verdict"] for one in [*said["claims"], *said["others"]]}
    missing = [name for name in names("claims") if name not in found]
    if missing:
        raise RuntimeError(f"docs/papers/results is not up to date on {', '.join(missing)}: run docs/papers/refresh")
    verdicts = {name: found[name] for name in names("claims")}
    report = Path(said["report"]).read_text(encoding="utf-8")
    return [_claim(report, name, verdict) for name, verdict in verdicts.items()], report


def markdown(claims: list[Claim]) -> str:
    """A list of all claims with their verdicts, then a section for each."""
    rows = [f'<li><a href="#{one.name}">{one.title}</a> {_badge(one.verdict)}</li>' for one in claims]
    return "\n\n".join(['<ol class="claims">\n' + "\n".join(rows) + "\n</ol>", *map(_section, claims)])


def headline(claims: list[Claim]) -> str:
    """What was found of all claims."""
    failing = [one.title for one in claims if one.verdict == "FAILS"]
    hold = sum(one.verdict == "holds" for one in claims)
    fail = f"{len(failing)} fail" if failing else "none fails"
    return f"{hold} of {len(claims)} claims hold, the paper's and two of ours, {fail}"


def undecided(claims: list[Claim]) -> str:
    """What is to be said of claims without a verdict, if there are any."""
    open_ones = [f'<a href="#{one.name}">{one.title}</a>' for one in claims if one.verdict == "not measurable here"]
    if not open_ones:
        return ""
    return (
        "A claim that cannot be decided does not fail: the quick scale is too small to see it. "
        f"`esscher reproduce --full` measures at the paper's scale, in hours. This is about {'; '.join(open_ones)}."
    )


def tally(claims: list[Claim]) -> str:
    """How many claims there are of each verdict, as a sentence has it."""
    hold, fail, unknown = (sum(one.verdict == verdict for one in claims) for verdict in SIGNS)
    return f"{_counted(hold, 'hold')}, {_counted(fail, 'fail')}, {unknown} cannot be decided"


def _counted(number: int, verb: str) -> str:
    return f"{number} {verb}s" if number == 1 else f"{number} {verb}"


def _claim(report: str, name: str, verdict: str) -> Claim:
    section = _only(rf'<section id="{name}">(.*?)</section>', report, name)
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", section, re.DOTALL))
    if not {"Where it is said", "Measured", "Refuted if", "Found"} <= facts.keys():
        raise RuntimeError(f"the report on {name} has other facts than docs/site/claims.py expects: {', '.join(facts)}")
    # The first figure shows the finding.
    figure = _only(r"(<figure (?:(?!</figure>).)*?<svg [^>]*role=\"img\".*?</figure>)", section, name)
    drawing = _only(r"(<svg [^>]*role=\"img\".*?</svg>)", figure, name)
    caption = _only(r'<p class="caption">(.*?)</p>', figure, name)
    note = re.search(r"<figcaption>(.*?)</figcaption>", figure, re.DOTALL)
    return Claim(
        name=name,
        title=_formulas(_only(r"<h2>(?:<span class=\"count\">\d+</span> )?(.*?) <span class=\"verdict", section, name)),
        verdict=verdict,
        lead=_formulas(_only(r'<p class="lead">(.*?)</p>', section, name)),
        statement=_formulas(_only(r"<p><strong>The claim\.</strong> (.*?)</p>", section, name)),
        formula=_only(r'<div class="formula displayed">(.*?)</div>', section, name),
        facts={key: _formulas(text) for key, text in facts.items()},
        figure=f'<p class="caption">{_formulas(caption)}</p>\n{themed(drawing)}\n'
        f"<figcaption>{_formulas(note[1]) if note else ''}</figcaption>",
    )


def _section(one: Claim) -> str:
    facts = one.facts
    # Rows of the figure's markup must not be empty: an empty line would end the block for Markdown.
    figure = "\n".join(line for line in one.figure.splitlines() if line.strip())
    return f"""## {html.unescape(one.title)} {{ #{one.name} }}

<p>{_badge(one.verdict)}</p>

<p><strong>{one.lead}</strong></p>

<p>{one.statement}</p>

<div class="arithmatex">\\[{one.formula}\\]</div>

<figure class="drawing">
{figure}
</figure>

<details class="quote">
<summary>How it was measured, and what would refute it</summary>
<p><strong>Where it is said.</strong> {facts["Where it is said"]}</p>
<p><strong>Measured.</strong> {facts["Measured"]}</p>
<p><strong>Refuted if.</strong> {facts["Refuted if"]}</p>
<p><strong>Found.</strong> {facts["Found"]}</p>
<p><a href="report.html#{one.name}">All figures and tables of this claim</a>, or on your machine:
<code>esscher reproduce --only {one.name}</code></p>
</details>"""


def _badge(verdict: str) -> str:
    return f'<span class="verdict {CLASSES[verdict]}">{SIGNS[verdict]} {verdict.lower()}</span>'


def _only(pattern: str, text: str, claim: str) -> str:
    found = re.search(pattern, text, re.DOTALL)
    if found is None:
        raise RuntimeError(f"the report on {claim} has another layout than docs/site/claims.py reads: {pattern}")
    return found[1]


def _formulas(markup: str) -> str:
    """Formulas of a report as those of this site."""
    return re.sub(
        r'<span class="formula">(.*?)</span>', r'<span class="arithmatex">\\(\1\\)</span>', markup, flags=re.DOTALL
    )
