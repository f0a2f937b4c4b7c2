"""The registry of data sets that are not part of the package: what they are and where to get them.

There is one `Source` per data set. It contains no data, only addresses, hashes and the expected
result. A data set is identified by the sha256 of its canonical arrays (X as float64 in C order,
then y as int8, before any transform; -0 counts as 0), because files with different bytes may
contain the same values. The hash of a file itself is checked if it is known and the file is
downloaded from its public source.

Every data set can also be provided as a tidy table `NAME.csv.gz` or `NAME.csv`: a header, the first
column `y` (0 or 1), then one column per feature.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from . import parsers
from .parsers import Parser


@dataclass(frozen=True)
class Form:
    """One form in which a data set is stored: its files, their parser, their public addresses.

    Parameters
    ----------
    parse : callable
        Takes the paths of `files`, in this order.
    files : tuple of str
        File names, looked up in the user's folders and in the cache.
    urls : tuple of str
        Their addresses; empty if these files have no public download, or none that was checked.
    sha256 : tuple of str
        Their hashes at these addresses; "" if not known (the arrays are checked anyway).
    """

    parse: Parser
    files: tuple[str, ...]
    urls: tuple[str, ...] = ()
    sha256: tuple[str, ...] = ()


_UNSTATED = "not stated; cite the original authors"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A data set: what it must be like, and how to get it.

    Parameters
    ----------
    home : str
        The page to cite and to look at.
    shape : tuple of int, optional
        (N, D), None where not fixed.
    counts : tuple of int, optional
        The numbers of y = 0 and y = 1.
    classes : tuple of str
        What y = 0 and y = 1 mean.
    arrays : str
        sha256 of the canonical arrays, "" where not known.
    forms : tuple of Form
        In order of preference.
    citation, licence, note : str
        The original authors, the terms of use, and a remark.
    transform : str
        What `change` does, in a few words.
    change : callable, optional
        Applied to X unless `raw=True`.
    """

    home: str
    classes: tuple[str, str]
    citation: str
    licence: str = _UNSTATED
    shape: tuple[int, int] | None = None
    counts: tuple[int, int] | None = None
    arrays: str = ""
    forms: tuple[Form, ...] = ()
    note: str = ""
    transform: str = ""
    change: Callable[[np.ndarray], np.ndarray] | None = None


_UCI = "CC BY 4.0 (UCI's general statement)"
_SKFEATURE = "https://jundongl.github.io/scikit-feature/datasets.html"
# The authors' repository at a fixed commit: files there can no longer change.
_SKFEATURE_FILES = (
    "https://raw.githubusercontent.com/jundongl/scikit-feature/"
    "48cffad4e88ff4b9d2f1c7baffb314d1b3303792/skfeature/data/"
)
_PRINCETON = "http://genomics-pubs.princeton.edu/oncology/affydata/"
_BROAD = "https://pubs.broadinstitute.org/mpr/projects/Leukemia/"
_ALON = (
    "Alon, U., Barkai, N., Notterman, D. A., Gish, K., Ybarra, S., Mack, D. and Levine, A. J. "
    "(1999). PNAS 96, 6745-6750."
)
_GOLUB = "Golub, T. R. et al. (1999). Science 286, 531-537."


def _public(parse: Parser, *addresses: tuple[str, str]) -> Form:
    """Return the form of files at public addresses, given as (url, sha256 or "").

    Files keep the names they have there, so that a file saved by hand is found.
    """
    urls, hashes = zip(*addresses, strict=True)
    return Form(parse, tuple(url.rsplit("/", 1)[1] for url in urls), urls, hashes)


def _uci(
    parse: Parser,
    path: str,
    sha256: str = "",
    *,
    files: tuple[str, ...] = (),
    tidy: tuple[str, ...] = (),
    **about: Any,
) -> Source:
    """Return a data set of UCI: the zip archive at `path`, or its files, or tidy tables."""
    zipped = (f"https://archive.ics.uci.edu/static/public/{path}.zip", sha256)
    return Source(
        home=f"https://archive.ics.uci.edu/dataset/{path}",
        forms=(
            *(Form(parsers.tidy, (file,)) for file in tidy),
            *(Form(parse, (file,)) for file in files),
            _public(parse, zipped),
        ),
        licence=_UCI,
        **about,
    )


def _skfeature(file: str, sha256: str, *, positive: int, other: str = "", **about: Any) -> Source:
    """Return a data set of scikit-feature: a MATLAB file, where Y == positive is y = 1.

    `other` is another name under which the file is known.
    """
    parse = partial(parsers.mat, positive=positive)
    known = (Form(parse, (other,)),) if other else ()
    forms = (_public(parse, (_SKFEATURE_FILES + file, sha256)), *known)
    return Source(home=_SKFEATURE, forms=forms, **about)


SOURCES: dict[str, Source] = {
    "colon": Source(
        home=_PRINCETON + "index.html",
        shape=(62, 2000),
        counts=(22, 40),
        classes=("normal", "tumour"),
        arrays="933fa76a1ad743f49c552d89e1622a8051be843f9b252bf9da45a008dd7e781e",
        forms=(
            Form(parsers.tidy, ("colon.csv.gz",)),
            _public(
                parsers.colon_princeton,
                (
                    _PRINCETON + "I2000.html",
                    "74cc7b47d40a0fbca8dde05f42bcb799b7babad29ea634139a221bb4386b1c3d",
                ),
                (
                    _PRINCETON + "tissues.html",
                    "0c5b377c5dd5544d015bff479a4260d5ccf0bcf98657f600a1d37e34193e0f52",
                ),
                (_PRINCETON + "names.html", ""),
            ),
        ),
        citation=_ALON,
        note="9 columns are copies of others. libsvm's colon-cancer (OpenML 1432) is normalised "
        "over all rows, so its values differ",
        transform="log",
        change=np.log,
    ),
    "colon_discrete": _skfeature(
        "colon.mat",
        "ffcdeba03eb67cec403fa1dc9f827c22a6e2c57786bf3e01dfe1b4b3e25e0a2f",
        positive=-1,
        shape=(62, 2000),
        counts=(22, 40),
        classes=("normal", "tumour"),
        arrays="1a9975a4c550582cf9a8f21b6d00c296503fc689ca0e8097951e08a05da975fa",
        citation=_ALON,
        note="levels -2, 0, 2: intensities of `colon` cut at mean -+ sd/2 of all rows, which leaks "
        "information from test rows. This is the colon data of RFVM",
    ),
    "golub": Source(
        home="https://www.openml.org/d/1104",
        shape=(72, 7129),
        counts=(47, 25),
        classes=("ALL", "AML"),
        arrays="2ff232b186d38d38d5d851f8f58532e2b515371f3045079c97e434f5602a33b8",
        forms=(
            Form(parsers.tidy_golub, ("golub_raw.csv.gz",)),
            _public(
                parsers.golub_broad,
                (_BROAD + "data_set_ALL_AML_train.txt", ""),
                (_BROAD + "data_set_ALL_AML_independent.txt", ""),
            ),
        ),
        citation=_GOLUB,
        note="38 training and 34 test samples: golub_split; fetched from the authors' own files",
        transform="clip to [100, 16000], log10",
        change=lambda X: np.log10(np.clip(X, 100, 16000)),
    ),
    "allaml": _skfeature(
        "ALLAML.mat",
        "068afe0fe1021932e1e7d801294c267de8aeaa9d41899acfac024e72b0d44c1e",
        positive=2,
        shape=(72, 7129),
        counts=(47, 25),
        classes=("ALL", "AML"),
        arrays="e2568635b4a5b09daa4fbcb229ae1f33451727ed8c1a53beb5dbdee33b0c8148",
        citation=_GOLUB,
        note="`golub` standardised by the mean and sd (N - 1) of all 72 rows, which leaks "
        "information from test rows",
    ),
    "leukemia_discrete": _skfeature(
        "leukemia.mat",
        "eb92382fb77c968864cb0a92a2c77acde7f88ba7fe5fd5a64b98184e3a05269d",
        positive=1,
        shape=(72, 7070),
        counts=(47, 25),
        classes=("ALL", "AML"),
        arrays="8aa02b016846e895cae7fa0dbbd0c0e96bf53ab4a6e9683e508f2e70de28be5d",
        citation=_GOLUB,
        note="levels -2, 0, 2",
    ),
    "lymphoma_discrete": _skfeature(
        "lymphoma.mat",
        "bd834ed911d47ecf2e07625ed77617d514d89ee398fa2e7a787230f7cf5243f8",
        positive=1,
        shape=(96, 4026),
        counts=(50, 46),
        classes=("other", "DLBCL"),
        arrays="0197ca1233fd9c42d99766bc02157c44c4777346540c6c295ceb5739cfa2331b",
        citation="Alizadeh, A. A. et al. (2000). Nature 403, 503-511.",
        note="levels -2, 0, 2; class 1 of 9 against the rest",
    ),
    "prostate_ge": _skfeature(
        "Prostate-GE.mat",
        "050b598534dbc662f23e30f39b41354b61d02ab8567837bcf9b1091c1c636ab4",
        positive=2,
        other="Prostate_GE.mat",
        shape=(102, 5966),
        counts=(50, 52),
        classes=("normal", "tumour"),
        arrays="5f5caaeea05675bd089bf10cf083ff31afa58049f9d4eaaff8030e3de590b230",
        citation="Singh, D. et al. (2002). Cancer Cell 1, 203-209.",
        note="class meaning inferred from the class sizes of the study (52 tumours)",
    ),
    "duke_lymph": Source(
        home="https://cran.r-project.org/package=mboost",
        shape=(49, 7129),
        counts=(25, 24),
        classes=("node negative", "node positive"),
        arrays="cfd02ec1285bbc0768e2572e61da6d3d54f789fc3dc4d4289b7e2a988433b399",
        citation="West, M. et al. (2001). PNAS 98, 11462-11467.",
        note="Westbc of the R package mboost, each sample standardised by its carrier; needs your "
        "own table. JCFO's table has 38 of these tumours, chosen by their authors",
    ),
    "smk_can_187": _skfeature(
        "SMK-CAN-187.mat",
        "96ff62a9dad001b4bb28a5c31f69e9c41fb1f42d02e4b39c31e4a57b46238aa7",
        positive=2,
        other="SMK_CAN_187.mat",
        shape=(187, 19993),
        counts=(90, 97),
        classes=("no cancer", "cancer"),
        citation="Spira, A. et al. (2007). Nature Medicine 13, 361-366 (GEO GSE4115).",
        note="smokers; class meaning inferred from the class sizes; values not checked here",
    ),
    "gli_85": Source(
        home=_SKFEATURE,
        shape=(85, 22283),
        counts=(26, 59),
        classes=("grade III", "grade IV"),
        forms=tuple(
            Form(partial(parsers.mat, positive=2), (f,)) for f in ("GLI_85.mat", "GLI-85.mat")
        ),
        citation="Freije, W. A. et al. (2004). Cancer Research 64, 6503-6510 (GEO GSE4412).",
        note="gliomas; class meaning inferred from the class sizes; needs your own file",
    ),
    "dorothea8000": _uci(
        parsers.dorothea,
        "169/dorothea",
        tidy=("dorothea8000.csv.gz",),
        shape=(1150, 8000),
        counts=(1038, 112),
        classes=("inactive", "active"),
        arrays="70362e9c7de6c001ff9bf95178edf4ac0bec7f96de149a4843f9b56e9cd0fb1b",
        citation="Guyon, I., Gunn, S., Ben-Hur, A. and Dror, G. (2004). Dorothea. UCI Machine "
        "Learning Repository. Data of DuPont Pharmaceuticals, KDD Cup 2001.",
        note="first 8000 of 100000 columns; 800 training rows, then 350 validation rows; 664 "
        "constant columns",
    ),
    "australian": _uci(
        parsers.australian,
        "143/statlog+australian+credit+approval",
        "f0bd9cd9b1d133cb20456b8953e1f8139fd30ed2b3f66da540db75136f1e9e0b",
        files=("australian.dat",),
        shape=(690, 14),
        counts=(383, 307),
        classes=("0", "1"),
        arrays="448eed4bec6918ec4018b32572653f71766dcc7ebd3f29d38f73e84749e97913",
        citation="Quinlan, R. Statlog (Australian Credit Approval). UCI Machine Learning "
        "Repository.",
    ),
    "breast_wisconsin": _uci(
        parsers.breast,
        "15/breast+cancer+wisconsin+original",
        files=("breast-cancer-wisconsin.data",),
        shape=(683, 9),
        counts=(444, 239),
        classes=("benign", "malignant"),
        arrays="8fc5f0cd659722d1800739e16aa2c764d79a425ae43531c76a1a807b49d19ac9",
        citation="Wolberg, W. H. (1990). Breast Cancer Wisconsin (Original). UCI Machine Learning "
        "Repository.",
        note="699 rows less 16 with a missing value; sample names are the file's rows from 0",
    ),
    "messidor": _uci(
        parsers.messidor,
        "329/diabetic+retinopathy+debrecen",
        "64ee2dbaffc69dab77cc0fb7458fa93cb21a20f15938cafacdc195a5e2226b2c",
        files=("messidor_features.arff",),
        shape=(1151, 19),
        counts=(540, 611),
        classes=("no signs", "signs of retinopathy"),
        arrays="a6b1fe810ce921a1e84d1a2964d63310941c2f3db6ce9f693ba6ba0d97b8bc44",
        citation="Antal, B. and Hajdu, A. (2014). Knowledge-Based Systems 60, 20-27.",
        note="the papers call it diabetic",
    ),
    "heart": _uci(
        parsers.heart,
        "145/statlog+heart",
        files=("heart.dat",),
        shape=(270, 13),
        counts=(150, 120),
        classes=("no disease", "heart disease"),
        arrays="5d829a48ad5ae1b960f3413aa04f4481b8c19d5ecbb7f1e0cf309cc7661f3e76",
        citation="Statlog (Heart). UCI Machine Learning Repository.",
    ),
    "ionosphere": _uci(
        parsers.ionosphere,
        "52/ionosphere",
        files=("ionosphere.data",),
        shape=(351, 34),
        counts=(126, 225),
        classes=("bad", "good"),
        arrays="d3f64c41b63f2012072a60bfcad68c38bf17a051edbcba0d0a0c4d5b30dcd84a",
        citation="Sigillito, V. G., Wing, S. P., Hutton, L. V. and Baker, K. B. (1989). Johns "
        "Hopkins APL Technical Digest 10, 262-266.",
        note="the second column is constant",
    ),
    "sonar": _uci(
        parsers.sonar,
        "151/connectionist+bench+sonar+mines+vs+rocks",
        files=("sonar.csv", "sonar.all-data"),
        shape=(208, 60),
        counts=(97, 111),
        classes=("rock", "mine"),
        arrays="2b40bae2e168dd9c53d5c41e7b18b0597fac269dfc95d9123322f0b758f5dd55",
        citation="Gorman, R. P. and Sejnowski, T. J. (1988). Neural Networks 1, 75-89.",
    ),
    "waveform_uci": Source(
        home="https://archive.ics.uci.edu/dataset/108/waveform+database+generator+version+2",
        shape=(3345, 40),
        counts=(1692, 1653),
        classes=("wave 1", "wave 2"),
        arrays="66c9d59e520c0ce59579747917f87e6f640c1bdc2f12cabd780eabd12870e35a",
        forms=(
            Form(parsers.waveform, ("waveform-+noise.data.gz",)),
            Form(parsers.waveform, ("waveform-+noise.data",)),
            # UCI's own file is packed by `compress`, which Python cannot read
            _public(
                parsers.waveform,
                ("https://www.openml.org/data/download/60/dataset_60_waveform-5000.arff", ""),
            ),
        ),
        citation="Breiman, L., Friedman, J. H., Olshen, R. A. and Stone, C. J. (1984). "
        "Classification and Regression Trees. Wadsworth.",
        licence=_UCI,
        note="classes 0 and 1 of 5000 rows; features 22 to 40 are noise; fetched from OpenML 60",
    ),
    "lund_breast": Source(
        home="https://home.thep.lu.se/pub/Preprints/01/lu_tp_01_14_abs.html",
        classes=("0", "1"),
        citation="Gruvberger, S. et al. (2001). Cancer Research 61, 5979-5984.",
        note="the 58 Lund tumours of JCFO, as far as its text tells; needs your own table",
    ),
    "seed_eeg": Source(
        home="https://bcmi.sjtu.edu.cn/home/seed/",
        classes=("negative", "positive"),
        citation="Zheng, W.-L. and Lu, B.-L. (2015). IEEE Transactions on Autonomous Mental "
        "Development 7, 162-175.",
        licence="granted by its authors on application",
        note="PFCVM's EEG data, positive against negative; needs your own table",
    ),
}


def forms(name: str) -> tuple[Form, ...]:
    """Return every form in which a data set may be stored: its own, then tidy tables NAME.csv.*."""
    own = SOURCES[name].forms
    taken = {file for form in own for file in form.files}
    tables = (Form(parsers.tidy, (file,)) for file in (f"{name}.csv.gz", f"{name}.csv"))
    return own + tuple(form for form in tables if form.files[0] not in taken)
