"""The figures that the text of GENES.md names, from the stored files alone.

The page is written by hand, in `GENES.md.j2`; what is in double braces there is an entry of the
dictionary that `figures` returns.
"""

import statistics
from collections.abc import Sequence
from typing import Any

from lab.records import lines

from . import often
from .declared import HERE, TABLES, Fit, Gene, Table, genes
from .stored_posteriors import stored_p_active
from .summary import (
    SELECTED,
    Stored,
    done,
    frequency,
    mean_weight,
    sparse,
    spoken_for,
    times,
)

FIRST = 50  # ranks that are told of
BY_NAME = {table.name: table for table in TABLES}
PFCVM, JCFO = BY_NAME["pfcvm-4"], BY_NAME["jcfo-3"]
AML = ("pfcvm-5", "jcfo-2", "rfvm-5")
"""The tables of AML and ALL, whose data have the same columns."""


def figures() -> dict[str, Any]:
    """Return every number and table of the page."""
    stored = Stored.of(HERE)
    priors = done(stored, sparse(PFCVM))
    default = stored.fit(priors[0])
    fits = dict.fromkeys(fit for table in TABLES for fit in table.fits)
    leading = _gene("Z50753")
    odds = [times(stored, fit, leading) for fit in priors]
    alone, group = (raised(stored, default_of(stored), group) for group in (False, True))
    x = stored.gene(priors[0], leading)
    return {
        "short": short(stored),
        "colon": colon(stored),
        "aml": aml(),
        "often": often_selected(stored),
        "rows": sum(len(genes()[table.name]) for table in (PFCVM, JCFO)),
        "genes": len(colon_genes()),
        "raised": ", ".join(g.gene for g in alone),
        "raised_groups": len(group),
        "active": f"{default['active']:.1f}",
        "prior_active": f"{default['prior_active']:.1f}",
        "leading": default["leading"],
        "p_leading": f"{x['p']:.3f}",
        "prior_leading": f"{x['prior']:.3f}",
        "odds_low": f"{min(odds):.1f}",
        "odds_high": f"{max(odds):.1f}",
        "group_size": f"{x['members']:.0f}",
        "group_p": f"{x['p_group']:.2f}",
        "group_prior": f"{x['prior_group']:.2f}",
        "group_odds": f"{times(stored, priors[0], leading, group=True):.1f}",
        "rfvm_leading": f"{stored.gene(Fit(data='colon', model='rfvm'), leading)['p']:.3f}",
        **_ranks(stored, priors[0]),
        **_asked(stored, priors),
        "missing": ", ".join(f"`{fit.name}`" for fit in fits if not stored.has(fit)),
    }


def _gene(name: str) -> Gene:
    return next(g for g in colon_genes() if g.gene == name)


def colon_genes() -> list[Gene]:
    """Return the genes that are printed of colon, each once, in the order of the print."""
    found: dict[int, Gene] = {}
    for gene in (*genes()[PFCVM.name], *genes()[JCFO.name]):
        found.setdefault(gene.number, gene)
    return list(found.values())


def default_of(stored: Stored) -> Fit:
    """Return PFCVM's posterior of colon under the sparse default."""
    return done(stored, sparse(PFCVM))[0]


def raised(stored: Stored, fit: Fit, group: bool) -> list[Gene]:
    """Return the genes of colon whose odds the data raise, alone or with their groups."""
    return [g for g in colon_genes() if spoken_for(stored, fit, g, group)]


def _ranks(stored: Stored, fit: Fit) -> dict[str, Any]:
    """Return how many printed genes are among the first, and the median rank, by table."""
    out: dict[str, Any] = {}
    for name, table in (("pfcvm", PFCVM), ("jcfo", JCFO)):
        ranks = [stored.gene(fit, g)["rank"] for g in genes()[table.name]]
        out[f"first_{name}"] = sum(rank <= FIRST for rank in ranks)
        out[f"median_{name}"] = f"{statistics.median(ranks):g}"
    return out


def _asked(stored: Stored, priors: Sequence[Fit]) -> dict[str, str]:
    """Return how many genes are active where half, as many or twice as many are asked for."""
    names = {"active_features halved": "halved", "as it is": "as_is",
             "active_features doubled": "doubled"}  # fmt: skip
    return {
        f"active_{names[fit.change]}": f"{stored.fit(fit)['active']:g}"
        for fit in priors
        if fit.change in names
    }


# --- tables ---------------------------------------------------------------------------------------


def _grid(head: list[str], body: list[list[str]], words: int) -> str:
    return lines([head, *body], [i >= words for i in range(len(head))])


def short(stored: Stored) -> str:
    """Return how many rows of each printed table are selected, or raised, alone or in groups."""
    body = []
    for table in (PFCVM, JCFO):
        printed, priors = genes()[table.name], done(stored, sparse(table))
        p = [stored.gene(priors[0], g)["p"] for g in printed]
        row = [table.title, str(len(printed)), str(sum(x > SELECTED for x in p)), f"{max(p):.3f}"]
        for group in (False, True):
            spoken = [[spoken_for(stored, fit, g, group) for fit in priors] for g in printed]
            row += [str(sum(each[0] for each in spoken)), str(sum(map(all, spoken)))]
        body.append(row)
    head = ["printed table", "rows", "P above 1/2", "largest P", "raised alone", "under each prior",
            "raised with group", "under each prior"]  # fmt: skip
    return _grid(head, body, 1)


def colon(stored: Stored) -> str:
    """Return the printed genes of colon: the print, our folds, and the exact posteriors."""
    fit, found = default_of(stored), stored_p_active("colon")
    rfvm = Fit(data="colon", model="rfvm")
    printed = [{g.number: g for g in genes()[table.name]} for table in (PFCVM, JCFO)]
    body = []
    for gene in colon_genes():
        x, own = stored.gene(fit, gene), found.get(gene.gene)
        body.append([
            gene.gene, gene.description,
            *(f"{by[gene.number].printed:g}" if gene.number in by else "" for by in printed),
            _folds(stored, PFCVM, gene), _folds(stored, JCFO, gene),
            f"{x['p']:.3f} ({x['prior']:.3f})", f"{x['rank']:.0f}",
            f"{x['p_group']:.2f} ({x['prior_group']:.2f})", f"{x['members']:.0f}",
            "" if own is None else f"{own:.3f}", f"{stored.gene(rfvm, gene)['p']:.3f}",
        ])  # fmt: skip
    head = ["gene", "is", "PFCVM prints", "JCFO prints", "our PFCVM", "our JCFO", "P (prior)",
            "rank", "group's P (prior)", "genes", "PFCVM", "RFVM"]  # fmt: skip
    return _grid(head, body, 2)


def _folds(stored: Stored, table: Table, gene: Gene) -> str:
    """Return how many folds select a gene, of JCFO also the mean theta, by the first reading."""
    folds = table.folds[0]
    number = round(frequency(stored, table, folds, gene) * len(stored.of_folds(folds)))
    theta = table is JCFO and number > 0
    return f"{number} ({mean_weight(stored, folds, gene):.2f})" if theta else str(number)


def aml() -> str:
    """Return the printed genes of AML and ALL that are among the leading ones of notebook 10."""
    found = stored_p_active("golub")
    printed = [{g.gene: g for g in genes()[name]} for name in AML]
    about = {name: g.description for by in printed for name, g in by.items()}
    body = [
        [name, about[name], f"{p:.3f}",
         *(f"{by[name].printed:g}" if name in by else "" for by in printed)]
        for name, p in found.items() if name in about
    ]  # fmt: skip
    return _grid(["gene", "is", "P", "PFCVM prints", "JCFO prints", "RFVM prints"], body, 2)


def often_selected(stored: Stored) -> str:
    """Return the genes of colon that our folds select most often, and where they are printed."""
    body = []
    for table in (PFCVM, JCFO):
        for number, count in often.often(stored, table, table.folds[0]):
            where = [x.title.partition(",")[0] for x in (PFCVM, JCFO)
                     if any(g.number == number for g in genes()[x.name])]  # fmt: skip
            name = often.name(stored, table.data, number)
            paper = table.title.partition(",")[0]
            body.append([paper, name, str(count), " and ".join(where)])
    return lines([["our folds of", "gene", "of 62 folds", "printed by"], *body],
                 [False, False, True, False])  # fmt: skip
