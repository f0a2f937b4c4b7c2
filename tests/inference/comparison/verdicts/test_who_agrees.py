"""Who speaks for a reference: only another exact sampler, by its draws."""

import xarray as xr

from ardvark.inference.comparison.verdicts.findings import agreeing


def made_by(kind, method, **attrs):
    return xr.DataTree(xr.Dataset(attrs={"kind": kind, "method": method, **attrs}))


FITS = {
    "nuts": made_by("mcmc", "nuts"),
    "again": made_by("mcmc", "nuts"),
    "exact": made_by("mcmc", "exact", sampler="nuts"),
    "gibbs": made_by("mcmc", "gibbs"),
    "adopted": made_by("mcmc", "adopted"),
    "advi": made_by("approximation", "advi"),
}


def test_another_exact_sampler_speaks_for_the_reference():
    assert agreeing("nuts", FITS, ["again", "gibbs"]) == "gibbs"
    assert agreeing("exact", FITS, ["nuts", "gibbs"]) == "gibbs"
    assert agreeing("gibbs", FITS, ["exact"]) == "exact"


def test_a_second_run_of_the_same_sampler_is_no_second_opinion():
    """It may have the same error. Nor do approximations and adopted draws prove anything."""
    assert agreeing("nuts", FITS, ["again", "exact", "adopted", "advi"]) is None
    assert agreeing("exact", FITS, ["nuts", "again"]) is None
