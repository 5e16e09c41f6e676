"""Row values: comparisons, IN lists, DISTINCT FROM and IN over subqueries, three-valued by component.

DuckDB compares rows as it sorts them, with two values; its text is what the standard says, written by components.
"""

from expressions import Expressions
from tree import Node, Seq, text

SIGNS = ["=", "=", "<>", "<", "<=", ">", ">="]
TESTS = ["", "", "", " IS NULL", " IS TRUE", " IS NOT TRUE", " IS NOT FALSE", " IS UNKNOWN"]


def by_components(sign, left, right):
    """A comparison of rows as the standard defines it, from the texts of their components."""
    pairs = list(zip(left, right))
    equal = [f"{one} = {other}" for one, other in pairs]
    if sign == "=":
        return f"({' AND '.join(equal)})"
    if sign in ("<>", "IS DISTINCT FROM"):
        return f"({' OR '.join(f'{one} {sign} {other}' for one, other in pairs)})"
    if sign == "IS NOT DISTINCT FROM":
        return f"({' AND '.join(f'{one} {sign} {other}' for one, other in pairs)})"
    arms = []
    for place, (one, other) in enumerate(pairs):
        last = sign if place == len(pairs) - 1 else sign[0]
        arms.append(f"({' AND '.join(equal[:place] + [f'{one} {last} {other}'])})")
    return f"({' OR '.join(arms)})"


class Row(Node):
    """A row of values."""

    def __init__(self, items):
        super().__init__("row", *items)

    def texts(self):
        """The components, for DuckDB."""
        return [text(part, True) for part in self.parts]

    def sql(self, theirs=False):
        """The text for Warpcube, or for DuckDB."""
        return f"({', '.join(text(part, theirs) for part in self.parts)})"


class RowComparison(Node):
    """Two rows and a sign."""

    def __init__(self, sign, left, right):
        super().__init__("bool", left, right)
        self.sign = sign

    def sql(self, theirs=False):
        """The text for Warpcube, or for DuckDB."""
        left, right = self.parts
        if theirs:
            return by_components(self.sign, left.texts(), right.texts())
        return f"({left.sql()} {self.sign} {right.sql()})"


class RowIn(Node):
    """A row in a list of rows."""

    def __init__(self, word, row, items):
        super().__init__("bool", row, Seq(items, least=1))
        self.word = word

    def sql(self, theirs=False):
        """The text for Warpcube, or for DuckDB."""
        row, items = self.parts
        if not theirs:
            return f"({row.sql()} {self.word} ({items.sql()}))"
        found = " OR ".join(by_components("=", row.texts(), item.texts()) for item in items.parts)
        return f"({'NOT ' if self.word == 'NOT IN' else ''}({found}))"


class RowInQuery(Node):
    """A row in the rows of a table that a condition keeps."""

    def __init__(self, word, row, columns, source, where):
        super().__init__("bool", row, source, where)
        self.word, self.columns = word, columns

    def sql(self, theirs=False):
        """The text for Warpcube, or for DuckDB."""
        row, source, where = (part.sql(theirs) if not isinstance(part, Row) else part for part in self.parts)
        inner = f"SELECT {', '.join(self.columns)} FROM {source}{where}"
        if not theirs:
            return f"({row.sql()} {self.word} ({inner}))"
        names = ", ".join(f"c{place}" for place, _ in enumerate(self.columns))
        equal = by_components("=", row.texts(), [f"q.c{place}" for place, _ in enumerate(self.columns)])
        found = f"EXISTS (SELECT 1 FROM ({inner}) AS q({names}) WHERE {equal})"
        open_question = f"EXISTS (SELECT 1 FROM ({inner}) AS q({names}) WHERE {equal} IS NULL)"
        answer = f"CASE WHEN {found} THEN true WHEN {open_question} THEN NULL ELSE false END"
        return f"({'NOT ' if self.word == 'NOT IN' else ''}({answer}))"


class Rows(Expressions):
    """Draws conditions on row values."""

    def predicate(self, scope, depth, kind=None):
        """One predicate, in parentheses; sometimes one on a row."""
        if kind is None and self.chance(0.06):
            return self.row_predicate(scope)
        return super().predicate(scope, depth, kind)

    def row_kinds(self):
        """Kinds of the components."""
        return [
            self.rng.choice(["int", "int", "text", "decimal", "date", "bool"])
            for _ in range(self.rng.choice([2, 2, 3]))
        ]

    def component(self, scope, kind, null=0.12):
        """A value that is compared: mostly a literal, sometimes NULL."""
        if self.chance(null):
            return Node("null", f"CAST(NULL AS {TYPES[kind]})" if self.chance(0.3) else "NULL")
        return self.leaf(scope, kind) if self.chance(0.25) else self.literal(kind)

    def row_predicate(self, scope):
        """A condition on a row of columns."""
        kinds = self.row_kinds()
        row = Row([self.leaf(scope, kind) for kind in kinds])
        pick = self.rng.random()
        if pick < 0.4:
            few = [Row([self.component(scope, kind) for kind in kinds]) for _ in range(self.rng.choice([1, 2, 3, 5]))]
            found = RowIn(self.rng.choice(["IN", "NOT IN"]), row, few)
        else:
            other = Row([self.component(scope, kind) for kind in kinds])
            sign = (
                self.rng.choice(SIGNS)
                if pick < 0.85
                else self.rng.choice(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
            )
            found = RowComparison(sign, row, other)
        test = self.rng.choice(TESTS)
        return Node("bool", "(", found, test, ")") if test else found

    def row_link(self, one, other):
        """A condition of ON that compares rows of both sides."""
        names = self.rng.sample(["id", "k", "g", "n", "c", "b", "dt"], self.rng.choice([2, 2, 3]))
        mine, theirs = ([scope.keys[0].replace(".id", f".{name}") for name in names] for scope in (one, other))
        sign = self.rng.choice(["=", "=", "=", "IS NOT DISTINCT FROM"])
        return RowComparison(sign, Row(mine), Row(theirs))

    def row_in_query(self, scope, source, inside, where):
        """A row of columns in a subquery of the same columns of another table."""
        names = self.rng.sample(["k", "g", "n", "c", "b", "dt"], 2)
        row = Row([f"{scope.keys[0][:-2]}{name}" for name in names])
        columns = [f"{inside.keys[0][:-2]}{name}" for name in names]
        return RowInQuery(self.rng.choice(["IN", "NOT IN"]), row, columns, source, where)


TYPES = {"int": "INTEGER", "text": "VARCHAR", "decimal": "DECIMAL(12,2)", "date": "DATE", "bool": "BOOLEAN"}
