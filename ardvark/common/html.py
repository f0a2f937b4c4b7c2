"""Small tables for notebooks: what `_repr_html_` of the package's objects returns."""

from collections.abc import Iterable, Sequence
from html import escape

_MOST = 25  # rows shown: a cell's output stays on a screen


def table(
    title: str,
    rows: Iterable[Sequence[object]],
    columns: Sequence[str] = (),
    notes: Iterable[str] = (),
) -> str:
    """Return an HTML table, one line per row; the texts are escaped here.

    Parameters
    ----------
    title : str
        What it is about.
    rows : iterable of sequences
        Cells; the first cell of each row is its heading. After 25 rows, the rest is only counted.
    columns : sequence of str
        Headings of the columns; may be empty.
    notes : iterable of str
        Sentences below the table.
    """
    body = [_row(cells) for cells in rows]
    if len(body) > _MOST:
        body[_MOST:] = [f"<tr><td>... and {len(body) - _MOST} more</td></tr>"]
    heads = "".join(f'<th scope="col">{escape(c)}</th>' for c in columns)
    below = [f"<p>{escape(note)}</p>" for note in notes]
    return "\n".join(
        [
            f"<p><b>{escape(title)}</b></p>",
            "<table>",
            *([f"<tr>{heads}</tr>"] if columns else []),
            *body,
            "</table>",
            *below,
        ]
    )


def _row(cells: Sequence[object]) -> str:
    left = 'style="text-align: left"'
    first, *rest = (escape(str(cell)) for cell in cells)
    return "".join(
        [
            f'<tr><th scope="row" {left}>{first}</th>',
            *(f"<td {left}>{cell}</td>" for cell in rest),
            "</tr>",
        ]
    )
