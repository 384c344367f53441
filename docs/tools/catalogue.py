"""Makes the catalogue page `docs/catalogue.md` from the front matter of all templates.

python docs/tools/catalogue.py           writes the page
python docs/tools/catalogue.py --check   says whether it is up to date; exits with 1 if not
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from stagegen.catalogue import Algorithm, Catalogue, Parameter, load_catalogue
from stagegen.catalogue.algorithm import NATIVE, RANKS_SERVED
from stagegen.catalogue.collective import UNITS
from stagegen.catalogue.references import CITATION, Work, cited_in, load_works
from stagegen.catalogue.values import ValueRange

PAGE = Path(__file__).parents[1] / "catalogue.md"

INTRODUCTION = """\
# Catalogue

All algorithms. Each name leads to its template; variants of one mechanism share a template. This
page is made from the front matter of the templates by `python docs/tools/catalogue.py`. Every
collective also has `native`, what the MPI library does by itself; it serves wherever nothing else
is faster or allowed.

| in an entry | what it says |
|---|---|
| *Wins* | when the algorithm is the best choice |
| *Cost* | its time in the model of Faraj 2006, §4.1.1.1. Measurements decide, not this cost |
| a parameter | the values that tuning tries; those up to a formula depend on ranks and size |
| | the default, in bold, serves where nothing was tuned |
| *Part* | a call that a [composition](guidelines.md) makes; rules say which routine serves it |

| symbol or word | meaning |
|---|---|
| p, n | ranks; bytes of a message |
| α, β | latency of a message; time of a byte |
| θ | two phases one after the other |
| δ_l | a light barrier: tokens between the ranks that would meet at a receiver or on a link |
| δ_h | an MPI barrier |
| γ by itself | contention: γ_n at receivers, γ_l on links, γ_s in switches |
| nγ, in reductions | the time to combine n bytes |
| lg | the logarithm to the base 2 |
| a *guest* | a rank beyond a power of two: another rank takes its data, and returns the result |
"""


def page(catalogue: Catalogue) -> str:
    """Return the whole page as Markdown."""
    sections = [section(catalogue, name) for name in catalogue.collectives]
    return "\n".join([INTRODUCTION, contents(catalogue), *sections, works(catalogue)])


def contents(catalogue: Catalogue) -> str:
    """Return a line of links to the collectives, with the number of algorithms of each."""
    counts = {name: len(algorithms(catalogue, name)) for name in catalogue.collectives}
    links = " · ".join(f"[{name}](#{name}) {count}" for name, count in counts.items())
    return f"{links}\n"


def algorithms(catalogue: Catalogue, collective: str) -> list[Algorithm]:
    """Return the algorithms of a collective, those that need a topology last."""
    own = (a for a in catalogue.of(collective) if a.name != NATIVE)
    return sorted(own, key=lambda algorithm: algorithm.topology_specific)


def section(catalogue: Catalogue, collective: str) -> str:
    """Return the part about one collective."""
    one = catalogue.collective(collective)
    counts = f"A size counts bytes {UNITS[one.size]}." if one.has_data else "It has no data."
    entries = (entry(algorithm) for algorithm in algorithms(catalogue, collective))
    return "\n".join([f"## {collective}\n", f"{one.summary} {counts}\n", *entries])


def entry(algorithm: Algorithm) -> str:
    """Return a paragraph about one algorithm, its facts as a list."""
    facts = [
        *([f"Wins: {algorithm.wins}"] if algorithm.wins else []),
        f"Cost: {algorithm.cost}",
        *(f"Needs: {need}" for need in needs(algorithm)),
        *(f"Part: {part.collective} of `{part.size.text}` bytes" for part in algorithm.parts),
        *(f"`{p.name}`: {p.meaning}: {values(p)}" for p in algorithm.parameters),
        f"Reference: {linked(algorithm.reference)}",
    ]
    link = f"../templates/{algorithm.template.as_posix()}"
    lines = [f"### [{algorithm.name}]({link})\n", f"{algorithm.summary}\n"]
    return "\n".join([*lines, *(f"- {fact}" for fact in facts), ""])


@cache
def known_works() -> Mapping[str, Work]:
    """Return the works of the templates, which are read once: hundreds of algorithms cite them."""
    return load_works()


def linked(reference: str) -> str:
    """Return a reference in which each work that has a number leads to it."""

    def link(match: re.Match[str]) -> str:
        work = known_works().get(match[0])
        return match[0] if work is None or work.link is None else f"[{match[0]}]({work.link})"

    return CITATION.sub(link, reference)


def works(catalogue: Catalogue) -> str:
    """Return the list of the works that algorithms are from."""
    used = {name for a in catalogue.algorithms for name in cited_in(a.reference)}
    cited = (work for name, work in sorted(known_works().items()) if name in used)
    lines = (f"- {work.cited}: {work.work}" + f", {work.at}" * bool(work.at) for work in cited)
    return "\n".join(["## References\n", *lines, ""])


#: Constraints whose names do not say what they ask for.
WORDS = {"dense": "data as plain bytes, so that other data is packed first"}


def needs(algorithm: Algorithm) -> list[str]:
    """Return what a communicator and a message must have, in words."""
    found = [WORDS.get(name, name.replace("_", " ")) for name in algorithm.constraints]
    if algorithm.serves_other_hosts:
        found.append(f"{RANKS_SERVED[algorithm.needs or '']}; made from its `{algorithm.needs}`")
    elif algorithm.has_tables:
        word = "scheme" if algorithm.needs in ("aapc", "hosts") else "construction"
        made = f"its `{algorithm.needs}`, {word} `{algorithm.construction}`"
        found.append(f"all ranks of the cluster or of a group, in any order; made from {made}")
    elif algorithm.needs is not None:
        found.append(RANKS_SERVED[algorithm.needs])
    if algorithm.max_ranks is not None:
        found.append(f"at most {algorithm.max_ranks:,} ranks")
    if algorithm.min_bytes > 0:
        found.append(f"at least {algorithm.min_bytes:,} bytes")
    if algorithm.max_bytes is not None:
        found.append(f"at most {algorithm.max_bytes:,} bytes")
    return found


def values(parameter: Parameter) -> str:
    """Return the values of a parameter, the default in bold; that of a range comes last."""
    bold = f"**{parameter.default}**"
    if isinstance(parameter.values, ValueRange):
        first, _, end = parameter.values.text.partition(" up to ")
        return f"{first} up to `{end}`; {bold}"
    listed = (bold if one == parameter.default else str(one) for one in parameter.values)
    return ", ".join(listed)


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or check it; return the exit status."""
    parser = argparse.ArgumentParser(description="Make the catalogue page.")
    parser.add_argument("--check", action="store_true", help="only compare")
    check = parser.parse_args(arguments).check
    text = page(load_catalogue())
    if check and PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE} is not up to date: run make catalogue, and commit the page", file=sys.stderr)
        return 1
    if not check:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
