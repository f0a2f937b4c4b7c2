"""What is said of a fit: a method's own reasons, verdicts, distances, remedies.

Rules give codes and numbers (`reasons.py`, `comparison/verdicts`, `scoring/statistics`), and what
is shown in Python, on the command line, by the estimator and on the page is made of the words here.
A word is changed in this file alone. The lines of a screen are in `comparison/text.py`, columns in
`scoring/columns.py`, sentences of a selection in `fits/selection_text.py`.
"""

REASONS = {
    # what a method says of itself
    "told": "{text}",
    "failed": "{step} failed: {error}",
    "unfinished": "{text}; raise {options}",
    "still rising": "the ELBO was still rising after {steps} iterations "
    "(stage {stage} of {stages})",
    "fell": "the ELBO fell from {start:.4g} to {end:.4g}, because the steps are too long; lower "
    "step_sizes",
    "short": "the optimiser stopped short of a mode (Newton decrement {decrement:.3g})",
    "collapsed": "the fit collapsed: iteration {iteration} pruned the last {what}; returned: "
    "{returned}. {advice}",
    "stopped": "{missing}, after {after}; go on with ardvark.resume, or raise {limit}",
    # convergence of Markov chains
    "draws": "fewer than {least} draws per chain, too few to judge convergence",
    "chains": "R-hat needs at least {least} chains",
    "frozen": "no bit of the mask of {mask} ever changed",
    "rhat": "R-hat of {quantity} is {value:.3f} (limit {limit:.3g}){others}",
    "others": ", and {more} more of {of} quantities are above their limit",
    "ess": "{kind} ESS of {quantity} is {value:.0f} (at least {least:.0f})",
    "one pass": "the last judgement passed, but {passes} in a row are asked for",
    # what a verdict finds in one fit
    "other problem": "its draws are of a different problem (fingerprint {fingerprint})",
    "no draws": "there are no draws: {reason}",
    "few draws": "there are {draws} draws, and fewer than {least:.0f} effective ones are too few "
    "to judge",
    "few effective": "{kind} ESS of {quantity} is {value:.0f}, and fewer than {least:.0f} "
    "effective ones are too few to judge",
    "not many draws": "there are {draws} draws (at least {least:.0f})",
    "one chain": "chains=1: R-hat needs at least 2",
    "stuck": "chain {which} never moved",
    "several stuck": "chains {which} never moved",
    "longer": "{reason}",
    "few diverged": "{count} of {total} transitions diverged: too few to change the verdict",
    "region missed": "{count} of {total} transitions diverged: the chains may have missed a region "
    "of the posterior",
    "energy": "E-FMI is {value:.2f} (limit {limit}): the chains explore the tails slowly",
    "depth": "{percent:.0f} % of the trajectories reached the maximum tree depth, {limit}",
    "khat": "k-hat is {value:.2f} (limit {limit:.2f}): q misses part of the posterior mass",
    "point": "it is a single state, with no spread",
    "copied": "{percent:.0f} % of its draws are the reference's own, so it is no independent fit",
    "none visible": "no feature has an effect above 0.1 in any of its draws",
    "few visible": "only {visible:.1f} features have an effect above 0.1, on average over draws",
    "less visible": "{which}; the reference has {reference:.1f}",
    "invisible": "{which}. This may be the truth: nothing in X predicts y",
    "invisible or lost": "{which}. This may be the truth, or lost by the approximation",
    # what a verdict finds beside other fits
    "distance": "{text}",
    "hidden": "{text}: too few draws to tell",
    "adopted": "its draws were adopted, and draws do not prove what they are of",
    "prior unchecked": "prior unchecked: {why}",
    "nothing exact": "there is no exact posterior to compare it with",
    "not exact": "it is no exact posterior",
    "doubted": "the reference, {reference}, cannot be trusted: {reason}",
}
"""What a method says of itself, and what a verdict finds, by code; with the names of numbers."""

PURPOSES = {
    "predictions": {
        "meaning": "P(y = 1), and the class",
        "good": "use its predictions",
        "rough": "use its predicted classes, not its probabilities",
        "bad": "do not use its predictions",
    },
    "means": {"meaning": "posterior means, in the posterior's own sds", "quoted": "its means"},
    "uncertainty": {
        "meaning": "intervals, sds, the joint distribution",
        "quoted": "its intervals",
    },
    "parameters": {
        "meaning": "bias, scales and precisions: what the model has besides weights",
        "quoted": "its parameters",
    },
    "ranking": {"meaning": "which features come first", "quoted": "its ranking"},
    "selection": {
        "meaning": "P(effect), and the features selected by it",
        "quoted": "its P(effect)",
    },
}
"""Of each purpose: what is read off the fit for it, and what the sentence says may be reported, or
by word a clause of its own, which stands first."""

CLAUSES = {
    "good": ("report {}", "and"),
    "rough": ("treat {} as approximate", "and"),
    "bad": ("do not report {}", "or"),
    "unseen": ("too few draws to judge {}", "and"),
}
"""By word, the best first, what is said of the purposes that have it; last, of those whose noise
hides something."""

SENTENCES = {
    "converged": "nothing speaks against it.",
    "opinion": "exact up to Monte Carlo error: {agrees}, another exact sampler, agrees.",
    "trust": "as good as the reference{purposes}.",
    "with care": "exact in the limit, but {why}.",
    "against": "{why}.",
    "nothing": "there is nothing to judge it by",
    "more draws": "draw more: {reason}.",
    "longer": "run longer: {reason}.",
}
"""What a statistician would sign, by the level of a verdict and what it rests on."""

REMEDIES = {
    "use the reference": "use the reference",
    "fit its problem": "fit the same problem as the reference",
    "fit": "ardvark.fit({arguments})",
    "resume": "ardvark.resume({fitted}, fit)",
    "rerun": "the same run with {arguments}",
    "rewrite": "another form of the model, such as the non-centred one",
    "same command": "the same command with {flags}",
    "use": "use {method}",
}
"""Actions, in Python and on the command line."""

FOR_ESTIMATOR = {
    "exact": "Try method_options={options}, or go on from here: classifier.posterior_ = "
    "ardvark.resume(classifier.problem_, classifier.posterior_).",
    "longer": "Try a longer run: {steps}.",
    "target_accept": "method_options={{'target_accept': 0.95}} if transitions diverge",
    "more": "Try method_options={{{name!r}: ...}} with more than the default.",
    "or exact": "Or try method='exact', which runs until it has converged.",
}
"""What the estimator says of a fit that has not converged."""

STATISTICS = {
    "error": "{component}: the mean is off by {value:.2g} sd",
    "inclusion": "{component}: an inclusion probability is off by {value:.2g}",
    "sd_ratio": "{component}: the sd is {value:.2g} times that of the reference",
    "sd_ratio_worst": "{component}: the sd is {value:.2g} times that of the reference",
    "coverage_50": "{component}: {percent} of the posterior lies in its 50 % interval",
    "coverage_90": "{component}: {percent} of the posterior lies in its 90 % interval",
    "two_sample": "{quantity}: a classifier recognises {percent} of the draws",
    "difference": "P(y = 1) differs by {value:.2g} on average",
    "agreement": "the predicted class is the same for {percent} of the rows",
    "row": "{component}: P(y = 1) differs by {value:.2f}",
    "spearman": "the rank correlation of the features is {value:.2f}",
    "captured": "its leading features carry {percent} of what the reference's carry",
    "p_active": "P(effect) of {component} differs by {value:.2f}",
}
"""A distance in words, with the fields {quantity}, {component} (the quantity, where none is named),
{value} and {percent}."""

HEADINGS = {
    "error": "error of {quantity}",
    "sd_ratio": "sd ratio of {quantity}",
    "coverage_90": "worst in 90 %",
    "difference": "P(y = 1) off by",
    "captured": "carried by its leading",
    "p_active": "P(effect) off by",
}
"""Of the statistics that have a column in the table."""

MEANINGS = {
    "error inclusion": (
        "How far the posterior mean is from the reference's, in the reference's posterior "
        "standard deviations; the component with the largest distance counts. For a binary "
        "feature mask, it is the largest difference between two inclusion probabilities."
    ),
    "sd_ratio sd_ratio_worst": (
        "The posterior standard deviation divided by the reference's; the median over "
        "components, and the component for which it is farthest from 1. A method with a ratio "
        "below 1 is overconfident. It is not given for a binary feature mask."
    ),
    "coverage_50 coverage_90": (
        "The share of the posterior, by the reference's draws, that lies in the method's "
        "own central 50 % intervals, on average over components, and in its central 90 % interval, "
        "of the component for which that is farthest from 90 %. A smaller share means that the "
        "method is overconfident."
    ),
    "two_sample": (
        "The accuracy of a classifier trained to tell the method's draws from the "
        "reference's. 0.5 is no better than a coin."
    ),
    "difference agreement row": (
        "The mean absolute difference between this method's P(y = 1) and the reference's, and "
        "the share of samples that both put into the same class. They are computed on the "
        "held-out samples, or on the training samples if none are held out. The worst row is the"
        " one whose P(y = 1) differs most."
    ),
    "spearman captured": (
        "How well the method ranks features. They are ordered by the mean size of their weights, "
        "or of their primal weights under a linear kernel. Given are the rank correlation with the "
        "reference's order, and how much of the size of the reference's ten leading features those "
        "carry that lead here (of the leading half, if there are fewer than 20 features): features "
        "that are equally unimportant may change places at no cost."
    ),
    "p_active": (
        "P(effect) is the probability that the effect of a feature is above the threshold, 0.5 "
        "unless another was asked for. The largest difference from the reference's."
    ),
}
"""What a distance says, for its reader, by the statistics that are read together."""
