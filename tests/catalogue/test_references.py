"""Works are found in references by authors and year, and named with their numbers."""

from __future__ import annotations

import pytest

from stagegen.catalogue.references import cited_in, load_works, with_numbers


@pytest.mark.parametrize(
    ("reference", "works"),
    [
        ("Faraj 2006, §4.1.1.1 (Rab1)", ("Faraj 2006",)),
        ("Bruck et al. 1997; Faraj 2006, §4.1", ("Bruck et al. 1997", "Faraj 2006")),
        (
            "Träff, Gropp and Thakur 2010; Hunold, Carpen-Amarie and Träff 2016 (a ≼ b)",
            ("Träff, Gropp and Thakur 2010", "Hunold, Carpen-Amarie and Träff 2016"),
        ),
        ("pairs; Sanders and Träff 2002 for other p", ("Sanders and Träff 2002",)),
        ("the MPI library's own documentation", ()),
    ],
)
def test_authors_and_year_make_a_work(reference, works):
    assert cited_in(reference) == works


def test_a_number_follows_the_year_of_a_work_that_has_one():
    works = load_works()
    assert with_numbers("Bruck et al. 1997, §3; Faraj 2006, §4", works) == (
        "Bruck et al. 1997 [doi:10.1109/71.642949], §3; Faraj 2006, §4"
    )


@pytest.mark.parametrize("work", load_works().values(), ids=lambda work: work.cited)
def test_every_work_is_cited_as_it_is_named_and_its_number_leads_somewhere(work):
    assert cited_in(f"{work.cited}, §1") == (work.cited,)
    assert work.link is None or work.link.startswith(
        ("https://doi.org/10.", "https://arxiv.org/abs/")
    )
