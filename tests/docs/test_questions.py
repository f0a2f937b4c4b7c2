"""From a question to its answer in two clicks: the questions that new users asked."""

import pytest

from tests.docs.site import pages, reachable

pytestmark = pytest.mark.docs

QUESTIONS = {
    "Which model do I take?": ("which", ("Which model", "rfvm", "pfcvm", "horseshoe")),
    "Does any model beat logistic regression on my table?": (
        "howto/choose",
        ("ardvark choose", "two standard errors", "stack", "l1"),
    ),
    "How large may my data be?": ("which", ("How large", "Rows", "Features", "Memory", "GB")),
    "How long will it take?": ("which", ("How long", "colon", "ardvark methods --for")),
    "What are the options of nuts?": ("methods/nuts", ("target_accept", "tune", "max_treedepth")),
    "What is the sd ratio?": ("report", ("sd ratio of eta", "sd_ratio_eta", "overconfident")),
    "Is there an example with genes?": ("howto/genes", ("colon", "2000 genes", "gibbs")),
    "How do I export?": ("howto/export", ("ardvark compare", "predictions.csv", "effects.csv")),
    "How do I cite?": ("howto/cite", ("@misc", "@article", "CITATION.cff", "Apache 2.0")),
    "How do I bring my own draws?": ("howto/own-draws", ("av.adopt", "NumPyro", "Stan")),
    "Does it run on a cluster?": ("howto/cluster", ("parallel_config", "--processes", "job array")),
    "How much does the prior matter?": (
        "howto/prior-sensitivity",
        ("av.sensitivity", "--sensitivity", "halved and doubled"),
    ),
    "What about missing values?": (
        "howto/missing-values",
        ("--drop-missing", "--impute", "av.table"),
    ),
    "What about text columns?": ("howto/missing-values", ("--encode", "onehot", "Encoder")),
    "Can I read a report on a phone?": ("report", ("phone", "dark mode")),
    "What do I do about a failing chain?": (
        "howto/failing-chain",
        ("av.resume", "R-hat", "sampler=", "Divergences"),
    ),
}
"""By question: the page with the answer, and words of it."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_two_clicks_away(question):
    name, words = QUESTIONS[question]
    page = f"{name}.html"
    assert page in reachable("index.html", 2)
    text = " ".join(pages()[page].text.split())
    assert not [word for word in words if word not in text]


def test_two_clicks_do_not_reach_everything():
    """So that the test above can fail."""
    assert "api/ardvark.fit.html" in reachable("index.html", 2)
    assert len(reachable("index.html", 1)) < len(reachable("index.html", 2)) <= len(pages())
    assert "api/ardvark.fit.html" not in reachable("index.html", 1)
