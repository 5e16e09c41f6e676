"""Aggregates and grouping."""

from rows import Rows
from tree import Literal, Node, Seq

DIRECTIONS = [" ASC NULLS FIRST", " ASC NULLS LAST", " DESC NULLS FIRST", " DESC NULLS LAST"]


class Aggregates(Rows):
    """Draws aggregating statements; sources come from the class below."""

    def direction(self):
        """Order of a sort key, which always says where NULLs go."""
        return self.rng.choice(DIRECTIONS)

    def simple_aggregate(self, scope):
        """An aggregate over a column, with the kind of its value."""
        kind = self.rng.choice(["int", "float", "decimal", "text", "date", "instant", "wide", "interval"])
        name = self.rng.choice(["min", "max", "count", "sum", "avg"])
        if name == "count":
            return Node("aggregate", "count(", self.leaf(scope, kind), ")"), "int"
        if name in ("sum", "avg"):
            kind = kind if kind in ("int", "float", "decimal") else "int"
            return Node("aggregate", f"{name}(", self.leaf(scope, kind), ")"), "float" if name == "avg" else kind
        return Node("aggregate", f"{name}(", self.leaf(scope, kind), ")"), kind

    def aggregate_call(self, scope):
        """Any aggregate."""
        name = self.rng.choice(
            [
                "star",
                "count",
                "distinct",
                "sum",
                "sum",
                "min",
                "max",
                "min",
                "max",
                "avg",
                "bool",
                "sum distinct",
                "strings",
            ]
        )
        if name == "star":
            call = Node("call", "count(*)")
        elif name in ("count", "distinct"):
            argument, _ = self.any(scope, 1)
            call = Node("call", "count(DISTINCT " if name == "distinct" else "count(", argument, ")")
        elif name in ("min", "max"):
            call = Node("call", f"{name}(", self.any(scope, 1)[0], ")")
        elif name == "bool":
            call = Node("call", self.rng.choice(["bool_and(", "bool_or("]), self.bool(scope, 1), ")")
        elif name == "strings":
            keys = ", ".join(f"{key} NULLS LAST" for key in scope.keys)
            call = Node("call", "string_agg(", self.leaf(scope, "text"), f", '|' ORDER BY {keys})")
        else:
            kind = self.rng.choice(["int", "float", "decimal"])
            word = {"sum distinct": "sum(DISTINCT ", "sum": "sum(", "avg": "avg("}[name]
            call = Node("call", word, self.of(scope, kind, 1), ")")
        if self.chance(0.25):
            return Node("call", call, " FILTER (WHERE ", self.bool(scope, 1), ")")
        return call

    def having(self, scope, share):
        """HAVING, or nothing."""
        if not self.chance(share):
            return Seq([])
        test = self.rng.choice(
            [
                lambda: Node("bool", "(count(*) > ", self.literal_of("int", ["0", "1", "2", "5"]), ")"),
                lambda: Node("bool", "(", self.simple_aggregate(scope)[0], " IS NOT NULL)"),
                lambda: Node("bool", "(min(", self.leaf(scope, "int"), ") BETWEEN -10 AND 5)"),
                lambda: Node("bool", "(sum(", self.leaf(scope, "int"), ") <> 0)"),
            ]
        )()
        return Seq([test], " AND ", " HAVING ")

    def keys(self, scope, counts):
        """Keys of groups: columns, and now and then expressions."""
        found = []
        for _ in range(self.rng.choice(counts)):
            key, kind = self.any(scope, 1 if self.chance(0.3) else 0)
            found.append(key if not isinstance(key, Literal) and "s" in key.sql() else self.column(scope, kind))
        return found

    def column(self, scope, kind):
        """A column of a kind."""
        return Node(kind, self.rng.choice(scope.of(kind) or scope.keys))

    def aggregate(self):
        """GROUP BY any keys, or none."""
        source, scope = self.source()
        keys = self.keys(scope, [0, 1, 1, 2, 3])
        items = [Node("item", key, f" AS k{number}") for number, key in enumerate(keys)]
        calls = [
            Node("item", self.aggregate_call(scope), f" AS c{number}") for number in range(self.rng.choice([1, 2, 3]))
        ]
        grouping = Seq(keys, ", ", " GROUP BY ")
        return Node(
            "query",
            "SELECT ",
            Seq(items + calls, least=1),
            " FROM ",
            source,
            self.where(scope, 0.5),
            grouping,
            self.having(scope, 0.25),
        )

    def grouping(self):
        """Grouping sets."""
        source, scope = self.base()
        keys = [self.column(scope, self.any(scope)[1]).sql() for _ in range(2)]
        if keys[0] == keys[1]:
            keys[1] = (
                scope.keys[0].replace(".id", ".k")
                if not keys[0].endswith(".k")
                else scope.keys[0].replace(".id", ".g")
            )
        one, other = keys
        sets = self.rng.choice(
            [
                f"ROLLUP({one}, {other})",
                f"CUBE({one}, {other})",
                f"GROUPING SETS (({one}), ({other}))",
                f"GROUPING SETS (({one}, {other}), ({one}), ())",
            ]
        )
        items = [f"{one} AS k0", f"{other} AS k1", Node("item", self.aggregate_call(scope), " AS c0")]
        items += [f"grouping({one}) AS c1"] * self.chance(0.5)
        return Node(
            "query",
            "SELECT ",
            Seq(items, least=1),
            " FROM ",
            source,
            self.where(scope, 0.4),
            f" GROUP BY {sets}",
            self.having(scope, 0.15),
        )
