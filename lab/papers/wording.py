"""How figures are written: with their errors, as differences, as counts."""


def plus_minus(value: float, error: float, digits: int = 1) -> str:
    """Return a figure with its error, where there is one."""
    text = f"{round(value, digits) + 0.0:.{digits}f}"  # no -0.0
    return text if error != error else f"{text} +- {error:.{digits}f}"


def signed(value: float, error: float = float("nan"), digits: int = 1) -> str:
    """Return a difference with its sign and its error; one without either is 0 in each fold."""
    if value == 0.0 and error == 0.0:
        return "0 in each fold"
    text = plus_minus(value, error, digits)
    return text if text.startswith("-") else f"+{text}"


def kept(value: float) -> str:
    """Return a number kept: three digits."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def stated(value: float, sd: float | None) -> str:
    """Return a printed figure, with the printed standard deviation where there is one."""
    return f"{value:g}" if sd is None else f"{value:g} (sd {sd:g})"
