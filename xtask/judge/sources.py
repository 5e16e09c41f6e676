"""What a SELECT reads: tables, views, subqueries that filters may or may not pass, joins."""

import tables
from aggregates import Aggregates
from expressions import Scope
from tree import Node, Seq

WEIGHTS = {"t": 5, "r": 4, "m": 4, "tiny": 3, "none": 1, "grouped": 1, "ranged": 1, "worded": 1, "long": 1}
JOINS = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]


class Sources(Aggregates):
    """Draws what a SELECT reads, with the columns that it then sees."""

    def __init__(self, rng):
        super().__init__(rng)
        self.aliases = 0
        self.views = []

    def alias(self):
        """A name that no other source has."""
        self.aliases += 1
        return f"s{self.aliases}"

    def base(self, names=None):
        """A table."""
        names = names or list(WEIGHTS)
        name = self.rng.choices(names, [WEIGHTS[other] for other in names])[0]
        alias = self.alias()
        columns = [(f"{alias}.{column}", kind) for column, _, kind in tables.COLUMNS]
        return Node("source", f"{name} AS {alias}"), Scope(columns, [f"{alias}.id"])

    def derived(self):
        """A filtered subquery, or a view of one: its rows are the table's, so that filters of one column nest."""
        inner, _ = self.base()
        columns = Scope([(column, kind) for column, _, kind in tables.COLUMNS], ["id"])
        return self.around_or_view(Node("query", "SELECT * FROM ", inner, self.where(columns, 0.9)))

    def around_or_view(self, body):
        """A query of all columns of the catalogue as a subquery or as a view."""
        if not self.chance(0.3):
            return self.around(body)
        name = f"v{len(self.views)}"
        self.views.append((name, body))
        _, scope = self.around(body)
        return Node("source", f"{name} AS {scope.keys[0][:-3]}"), scope

    def joined(self):
        """Two or three sources."""
        (left, one), (right, other) = self.base(["t", "r", "m", "tiny"]), self.base(["m", "tiny", "none", "r"])
        kind = self.rng.choice(JOINS)
        scope = Scope(one.columns + other.columns, one.keys + other.keys)
        column = self.rng.choice(["id", "id", "k", "k", "n", "c", "d", "dt", "p", "ts", "i32", "u8", "s", "f"])
        mine, theirs = one.keys[0].replace(".id", f".{column}"), other.keys[0].replace(".id", f".{column}")
        conditions = [Node("bool", f"({mine}{self.rng.choice([' = '] * 4 + [' IS NOT DISTINCT FROM '])}{theirs})")]
        if self.chance(0.12):
            conditions = [self.row_link(one, other)]
        elif column not in ("id", "n", "k") or kind == "FULL JOIN" and self.chance(0.3):
            conditions.append(Node("bool", f"({one.keys[0]} % 5 = {other.keys[0]} % 5)"))
        if kind != "FULL JOIN" and self.chance(0.3):
            conditions.append(self.predicate(self.rng.choice([scope, one, other]), 1))
        source = Node("source", left, f" {kind} ", right, " ON ", Seq(conditions, " AND ", least=1))
        if self.chance(0.2):
            third, more = self.base(["tiny", "m"])
            source = Node(
                "source", source, f" {self.rng.choice(JOINS[:3])} ", third, f" ON {more.keys[0]} = {one.keys[0]}"
            )
            scope = Scope(scope.columns + more.columns, scope.keys + more.keys)
        return source, scope

    def source(self):
        """What a SELECT reads."""
        ways = [self.base, self.derived, self.joined, self.limited, self.united_all, self.numbered, self.grouped]
        return self.rng.choices(ways, [10, 5, 6, 1, 1, 1, 1])[0]()

    def around(self, body, more=()):
        """A subquery of all columns of the catalogue, and maybe more."""
        alias = self.alias()
        columns = [(f"{alias}.{column}", kind) for column, _, kind in tables.COLUMNS]
        columns += [(f"{alias}.{column}", kind) for column, kind in more]
        return Node("source", "(", body, f") AS {alias}"), Scope(columns, [f"{alias}.id"])

    def limited(self):
        """The first rows of a table: filters around it must stay there."""
        inner, scope = self.base()
        limit = self.rng.choice([3, 20, 100])
        return self.around(Node("query", "SELECT * FROM ", inner, f" ORDER BY {scope.keys[0]} DESC LIMIT {limit}"))

    def united_all(self):
        """Two tables, one after the other."""
        (one, _), (other, inside) = self.base(["t", "r"]), self.base(["tiny", "m", "none"])
        arms = Node("query", "SELECT *, 0 AS arm FROM ", one, " UNION ALL SELECT *, 1 AS arm FROM ", other)
        arms.parts.append(self.where(inside, 0.5))
        source, scope = self.around(arms, [("arm", "int")])
        scope.keys.append(scope.keys[0].replace(".id", ".arm"))
        return source, scope

    def numbered(self):
        """Rows with their number in a partition: a filter of the partition may pass the window, others may not."""
        inner, scope = self.base(["t", "r", "m"])
        key = scope.keys[0]
        window = f"row_number() OVER (PARTITION BY {key.replace('.id', '.k')} ORDER BY {key})"
        return self.around(Node("query", f"SELECT *, {window} AS place FROM ", inner), [("place", "int")])

    def grouped(self):
        """Groups of a table, of few columns."""
        inner, scope = self.base(["t", "r", "m"])
        items = "k AS id, k, count(*) AS n, min(c) AS c, sum(d) AS d, max(dt) AS dt, sum(p) AS p, max(g) AS g"
        having = self.having(Scope([("g", "int"), ("n", "int")], ["id"]), 0.3)
        body = Node("query", f"SELECT {items} FROM ", inner, " GROUP BY k", having)
        alias = self.alias()
        kinds = {
            "id": "int",
            "k": "int",
            "n": "int",
            "c": "text",
            "d": "float",
            "dt": "date",
            "p": "decimal",
            "g": "int",
        }
        scope = Scope([(f"{alias}.{column}", kind) for column, kind in kinds.items()], [f"{alias}.id"])
        return Node("source", "(", body, f") AS {alias}"), scope

    def where(self, scope, share=0.7):
        """WHERE, or nothing."""
        if not self.chance(share):
            return Seq([])
        conditions = [self.bool(scope, 2) for _ in range(self.rng.choice([1, 1, 2, 3]))]
        return Seq(conditions, " AND ", " WHERE ")
