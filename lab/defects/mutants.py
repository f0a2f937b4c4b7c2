"""Small defects of the code, made from its syntax tree, for `lab.defects.mutation`.

An operator takes a node and yields what may stand in its place. What cannot change a number or a
decision is left alone: docstrings, annotations, decorators, imports, the texts of errors, messages
to the user, clocks. So are guards below 1e-3 and limits of 100 and more, which are there not to be
seen.

A file's share of a sample grows as the square root of the number of its mutants, and within a file
the operators take turns, so that neither the longest file nor the commonest sign fills it. A longer
sample starts with the shorter one.
"""

import ast
import hashlib
import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Operator = Callable[[ast.AST, ast.AST], Iterator[ast.AST]]


@dataclass(frozen=True)
class Mutant:
    """One defect: the bytes from `start` to `end` of the file at `path` become `after`."""

    path: str
    operator: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def applied(self, source: str) -> str:
        """Return the source with the defect."""
        text = source.encode()
        return (text[: self.start] + self.after.encode() + text[self.end :]).decode()

    def key(self, source: str) -> str:
        """Return a name that lasts as long as its file does not change."""
        return hashlib.sha256(f"{self} {source}".encode()).hexdigest()[:16]


# --- operators: what may stand in the place of a node ---------------------------------------------

SIGNS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
}
BOUNDARIES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
TURNED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
OPPOSITES = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_PAIRS = (
    ("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"), ("sum", "mean"),
    ("std", "var"), ("zeros", "ones"), ("zeros_like", "ones_like"), ("floor", "ceil"),
    ("log", "log1p"), ("exp", "expm1"),
)  # fmt: skip
TWINS = dict(_PAIRS) | {b: a for a, b in _PAIRS}
ALONG_AN_AXIS = {
    "sum", "mean", "min", "max", "std", "var", "any", "all", "prod", "cumsum", "argmin", "argmax",
    "argsort", "sort", "logsumexp", "concatenate", "stack",
}  # fmt: skip
SYMMETRIC = {"min", "max", "minimum", "maximum", "logaddexp", "broadcast_arrays", "array_equal"}


def other(node: ast.AST, **fields: object) -> ast.AST:
    """Return a node that differs in some fields."""
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def arithmetic(node: ast.AST, _: ast.AST) -> Iterator[ast.AST]:
    """+ and -, * and / change places; a power becomes a product."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in SIGNS and not _text(node):
        yield other(node, op=SIGNS[type(node.op)]())


def dropped_part(node: ast.AST, _: ast.AST) -> Iterator[ast.AST]:
    """A sum loses a term, a product a factor."""
    if isinstance(node, ast.BinOp) and not _text(node):
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            yield node.left
        if isinstance(node.op, ast.Add | ast.Mult):
            yield node.right


def sign(node: ast.AST, _: ast.AST) -> Iterator[ast.AST]:
    """-x becomes x."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand


def comparison(node: ast.AST, _: ast.AST) -> Iterator[ast.AST]:
    """== becomes !=; < becomes <= between counts, > between measures, where <= would not show."""
    if not isinstance(node, ast.Compare):
        return
    sides = [node.left, *node.comparators]
    for i, op in enumerate(node.ops):
        order = BOUNDARIES if _counts(sides[i]) or _counts(sides[i + 1]) else TURNED
        if new := (OPPOSITES | order).get(type(op)):
            yield other(node, ops=[*node.ops[:i], new(), *node.ops[i + 1 :]])


def constant(node: ast.AST, _: ast.AST) -> Iterator[ast.AST]:
    """A number grows by 1; 1 becomes 0 too."""
    value = node.value if isinstance(node, ast.Constant) else None
    if type(value) is int and value < 100:
        yield ast.Constant(value + 1)
        if value == 1:
            yield ast.Constant(0)
    if type(value) is float and (value == 0.0 or 1e-3 <= value < 100.0):
        yield ast.Constant(value + 1.0)


def truth(node: ast.AST, _: ast.AST) -> Iterator[ast.AST]:
    """True becomes False, False True."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)


def condition(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """The other branch is taken, but where one of them only refuses its input."""
    if not (isinstance(parent, ast.If | ast.While | ast.IfExp) and node is parent.test):
        return
    if isinstance(parent, ast.If) and isinstance(parent.body[0], ast.Raise):
        return
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPPOSITES:
        return  # `comparison` does it
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    yield node.operand if negated else ast.UnaryOp(ast.Not(), node)


def connective(node: ast.AST, _: ast.AST) -> Iterator[ast.AST]:
    """`and` becomes `or`, `or` becomes `and`."""
    if isinstance(node, ast.BoolOp):
        yield other(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def swapped_arguments(node: ast.AST, _: ast.AST) -> Iterator[ast.AST]:
    """Two neighbours of the same kind change places in a call."""
    if not isinstance(node, ast.Call) or _called(node) in SYMMETRIC:
        return
    for i, (a, b) in enumerate(itertools.pairwise(node.args)):
        plain = isinstance(a, ast.Name | ast.Attribute | ast.Subscript | ast.BinOp | ast.Call)
        if plain and type(a) is type(b) and ast.dump(a) != ast.dump(b):
            yield other(node, args=[*node.args[:i], b, a, *node.args[i + 2 :]])


def function(node: ast.AST, _: ast.AST) -> Iterator[ast.AST]:
    """The smallest becomes the largest, a sum a mean, a logarithm log1p."""
    twin = TWINS.get(_called(node))
    if isinstance(node, ast.Call) and twin:
        name = "attr" if isinstance(node.func, ast.Attribute) else "id"
        yield other(node, func=other(node.func, **{name: twin}))


def axis(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """Along the first axis in place of another, along the last in place of the first."""
    named = isinstance(parent, ast.keyword) and parent.arg == "axis"
    placed = _called(parent) in ALONG_AN_AXIS and parent.args[:1] == [node]
    if named or (placed and isinstance(parent.func, ast.Attribute)):
        text = ast.unparse(node)
        if text.lstrip("-").isdigit():
            yield ast.Constant(-1 if text == "0" else 0)


def transposition(node: ast.AST, _: ast.AST) -> Iterator[ast.AST]:
    """x.T becomes x."""
    if isinstance(node, ast.Attribute) and node.attr == "T":
        yield node.value


def dropped_statement(node: ast.AST, _: ast.AST) -> Iterator[ast.AST]:
    """What changes a state is left out: `a += b`, `self.a = b`, `a[i] = b`, `a.sort()`."""
    kept = isinstance(node, ast.Assign) and all(
        isinstance(t, ast.Attribute | ast.Subscript) for t in node.targets
    )
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if kept or called or isinstance(node, ast.AugAssign):
        yield ast.Pass()


OPERATORS: tuple[Operator, ...] = (
    arithmetic, dropped_part, sign, comparison, axis, constant, truth, condition, connective,
    swapped_arguments, function, transposition, dropped_statement,
)  # fmt: skip


def _text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether texts or lists are joined."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(
        isinstance(s, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(s, ast.Constant) and isinstance(s.value, str))
        for s in sides
    )


def _counts(node: ast.AST) -> bool:
    """Whether this is a whole number as far as one can see."""
    whole = isinstance(node, ast.Constant) and type(node.value) is int
    return whole or _called(node) == "len" or getattr(node, "attr", "") in {"size", "ndim"}


def _called(node: ast.AST) -> str:
    """Return the name of the function or method that is called, "" where none is."""
    func = node.func if isinstance(node, ast.Call) else None
    return getattr(func, "attr", getattr(func, "id", ""))


# --- mutants of a file ----------------------------------------------------------------------------

SPEAKERS = {"logger", "report", "reporter", "update", "warnings"}
CLOCKS = {"perf_counter", "monotonic"}
# of a call: its texts, and what changes speed or checks alone
WORDS = {"paper", "why", "year", "strict", "copy", "check_finite", "progressbar", "stacklevel"}
OPEN = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Attribute, ast.Starred)
CLOSED = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple)


def silent(node: ast.AST, parent: ast.AST) -> bool:
    """Whether nothing below this node can change a number or a decision."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if any(node is getattr(parent, name, None) for name in ("annotation", "returns")):
        return True
    if node in getattr(parent, "decorator_list", ()):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in WORDS
    if isinstance(node, ast.BinOp):
        return _called(node.left) in CLOCKS
    if isinstance(node, ast.If) and not node.orelse:  # imports for types, messages
        return all(silent(s, node) and not isinstance(s, ast.Raise) for s in node.body)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or silent(node.value, node)
    if isinstance(node, ast.Call):
        owner = node.func
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        return isinstance(owner, ast.Name) and owner.id in SPEAKERS
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def _pairs(node: ast.AST, parent: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield every node that is not silent, with its parent."""
    if not silent(node, parent):
        yield node, parent
        for child in ast.iter_child_nodes(node):
            yield from _pairs(child, node)


def mutants(path: str, source: str) -> list[Mutant]:
    """Return every mutant of a file, in its order; no two of them read the same."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0, *itertools.accumulate(map(len, lines))]
    tree, found = ast.parse(source), {}
    for (node, parent), operator in itertools.product(_pairs(tree, tree), OPERATORS):
        for new in operator(node, parent):
            after = ast.unparse(new)
            within = isinstance(parent, OPEN) or node is getattr(parent, "func", None)
            within |= isinstance(parent, ast.Subscript) and node is parent.value
            if within and not isinstance(new, CLOSED):
                after = f"({after})"
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            name = operator.__name__.replace("_", " ")
            mutant = Mutant(path, name, node.lineno, start, end, ast.unparse(node), after)
            found.setdefault((start, end, after), mutant)
    return list(found.values())


def draw(sources: Mapping[str, str], size: int, seed: int) -> list[Mutant]:
    """Return a sample of the mutants of these files (path: source), the same for an equal seed."""
    placed = []
    for path in sorted(sources):
        rng = random.Random(f"{seed} {path}")
        by_operator: dict[str, list[Mutant]] = {}
        for mutant in mutants(path, sources[path]):
            by_operator.setdefault(mutant.operator, []).append(mutant)
        groups = [rng.sample(group, len(group)) for group in by_operator.values()]
        turns = itertools.zip_longest(*rng.sample(groups, len(groups)))
        ordered = [mutant for turn in turns for mutant in turn if mutant is not None]
        at = rng.random()
        placed += [((at + i) / len(ordered) ** 0.5, m) for i, m in enumerate(ordered)]
    return [mutant for _, mutant in sorted(placed, key=lambda pair: pair[0])[:size]]
