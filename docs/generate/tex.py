"""The equations of a model in TeX, from the plain lines of its docstring's program."""

import re
from collections.abc import Iterable

GREEK = (
    "alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "lambda", "mu", "nu", "xi", "pi",
    "rho", "sigma", "tau", "psi", "Phi",
)  # fmt: skip
_TOKEN = re.compile(
    r"(?P<sum>sum_(?P<over>\w))"
    r"|(?P<abs>abs\((?P<of>\w+)\))"
    r"|(?P<half>\b[NC]\+)"
    r"|(?P<indicator>\b1(?=\())"
    r"|(?P<power>\^(?P<exponent>-?\w+(?:/\w+)?))"
    r"|(?P<name>[A-Za-z]\w*~?(?:_\w+)?)(?P<transposed>')?"
    r"|(?P<product> \* )"
    r"|(?P<tilde>~)"
)


def aligned(lines: Iterable[tuple[str, str, str]]) -> str:
    """Return (symbol, "~ law" or "= value", equation) as aligned equations of Markdown."""
    rows = []
    for symbol, law, number in lines:
        rows.append(f"{tex(symbol)} &{tex(law)}")
        rows[-1] += rf" && \text{{{number}}}" if number else ""
    body = " \\\\\n".join(rows)
    return f"$$\n\\begin{{aligned}}\n{body}\n\\end{{aligned}}\n$$"


def tex(plain: str) -> str:
    """Return a plain formula in TeX: Greek by its name, subscripts, powers, words upright."""
    return _TOKEN.sub(_one, plain)


def _one(match: re.Match[str]) -> str:
    found = match.groupdict()
    if found["sum"]:
        return rf"\sum_{found['over']}"
    if found["abs"]:
        return f"|{tex(found['of'])}|"
    if found["half"]:  # a half-normal, a half-Cauchy
        return rf"\mathrm{{{found['half'][0]}}}^{{+}}"
    if found["indicator"]:
        return r"\mathbf{1}"
    if found["power"]:
        return f"^{{{found['exponent']}}}"
    if found["product"]:
        return r" \odot "
    if found["tilde"]:
        return r"\sim"
    return _name(found["name"]) + (r"^\top " if found["transposed"] else "")


def _name(name: str) -> str:
    """Return a name: a letter with a subscript, or a word."""
    letter, _, below = name.partition("_")
    if letter.endswith("~"):
        return rf"\tilde{_name(letter[:-1])}" + (f"_{{{below}}}" if below else "")
    if name == "c2":  # the horseshoe's c squared, as one variable
        return "c^2"
    if numbered := re.fullmatch(r"([A-Za-z]+?)(\d)", letter):
        letter, below = numbered.groups()
    known = letter in GREEK
    if not known and len(letter) > 1:
        return r"\mathrm{" + name.replace("_", r"\_") + "}"
    shown = f"\\{letter}" if known else letter
    subscript = f"\\{below}" if below in GREEK else below
    return shown + (f"_{{{subscript}}}" if below else "") + (" " if known and not below else "")
