"""Classifiers of scikit-learn that the papers compare with: SVM, trees, perceptron, process."""

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from lab.yardsticks.contract import INNER, Steps, Yardstick

TREES, STUMPS = 300, 100


def quadratic(D: int, seed: int) -> Steps:
    """Return the SVM with kernel (1 + x'z / D)^2, with Platt's P (1999, Large Margin Classifiers).

    The sigmoid is fitted to the margins of inner folds' held-out rows, the machine to all rows.
    """
    machine = SVC(kernel="poly", degree=2, coef0=1.0, gamma=1.0 / D)
    folds = StratifiedKFold(INNER, shuffle=True, random_state=seed)
    return [("model", CalibratedClassifierCV(machine, method="sigmoid", cv=folds, ensemble=False))]


def process(D: int, seed: int) -> Steps:
    """Return a Gaussian process with a length scale for each feature, which start at sqrt(D)."""
    kernel = ConstantKernel(1.0, (1e-2, 1e3)) * RBF(np.full(D, D**0.5), (1e-1, 1e5))
    return [("model", GaussianProcessClassifier(kernel, random_state=seed))]


def used(fitted: Pipeline) -> np.ndarray:
    """Return the features that some tree splits on."""
    return np.flatnonzero(fitted[-1].feature_importances_)


def support(fitted: Pipeline) -> int:
    """Return the number of support vectors."""
    return int(fitted[-1].calibrated_classifiers_[0].estimator.n_support_.sum())


QUADRATIC_SVM = Yardstick(
    name="quadratic_svm",
    steps=quadratic,
    grid={"model__estimator__C": tuple(np.logspace(-2, 3, 6).tolist())},
    samples=support,
)
"""SVM with the kernel (1 + x'z / D)^2; P by Platt scaling, labels by P > 1/2."""
RANDOM_FOREST = Yardstick(
    name="random_forest",
    steps=lambda D, seed: [("model", RandomForestClassifier(TREES, random_state=seed))],
    grid={"model__max_features": ("sqrt", 0.1)},
    features=used,
    fixed={"trees": TREES},
)
"""300 trees (Breiman 2001); P is the mean over trees; features are those split on."""
ADABOOST = Yardstick(
    name="adaboost",
    steps=lambda D, seed: [("model", AdaBoostClassifier(n_estimators=STUMPS, random_state=seed))],
    features=used,
    fixed={"stumps": STUMPS},
)
"""AdaBoost of 100 decision stumps (Freund and Schapire 1997), nothing tuned."""
PERCEPTRON = Yardstick(
    name="perceptron",
    steps=lambda D, seed: [("model", MLPClassifier(max_iter=500, random_state=seed))],
    grid={
        "model__hidden_layer_sizes": (
            (100, 50), (100, 50, 100), (100, 50, 50, 100), (100, 50, 25, 50, 100),
        )
    },
)  # fmt: skip
"""Multilayer perceptron by Adam, one of the RFVM paper's four sets of hidden layers."""
GP_ARD = Yardstick(
    name="gp_ard",
    steps=process,
)
"""Gaussian process with a length scale for each feature (ARD), Laplace's approximation, scales by
marginal likelihood; all training rows, where the paper has inducing points."""
