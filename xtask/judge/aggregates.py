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
                "median",
                "percentile",
            ]
        )
        if name == "star":
            call = Node("call", "count(*)")
        elif name in ("count", "distinct"):
            argument, _ = self.any(scope, 1)
            call = Node("call", "count(DISTINCT " if name == "distinct" else "count(", argument, ")")
        elif name in ("min", "max"):
            call = Node("call", f"{name}(", self.any(scope, 1)[0], ")")
        elif name == "median":
            call = Node("call", "median(", self.of(scope, self.rng.choice(["int", "float"]), 1), ")")
        elif name == "percentile":
            kind = self.rng.choice(["int", "float", "decimal", "text", "date", "instant", "wide"])
            # Shares whose products are exact: of others DuckDB and PostgreSQL take different values.
            share = self.rng.choice(["0", "0.25", "0.5", "0.75", "1"])
            call = Node("call", "quantile_disc(", self.leaf(scope, kind), f", {share})")
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
        """Grouping sets of columns and expressions: within each other, crossed, repeated, empty."""
        source, scope = self.rng.choice([self.base, self.base, self.derived, self.joined])()
        drawn = [self.column(scope, self.any(scope)[1]).sql() for _ in range(self.rng.choice([2, 3, 4]))]
        keys = list(dict.fromkeys(drawn))
        if self.chance(0.25):
            keys.append(f"({self.column(scope, 'int').sql()} % 3)")
        clause = Seq([self.sets(keys) for _ in range(self.rng.choice([1, 1, 1, 2]))], ", ", " GROUP BY ", least=1)
        used = [key for key in keys if key in clause.sql()]
        items = [Node("item", key, f" AS k{number}") for number, key in enumerate(used) if self.chance(0.8)]
        calls = range(self.rng.choice([1, 1, 2, 3]))
        items += [Node("item", self.aggregate_call(scope), f" AS c{number}") for number in calls]
        asked = f"grouping({', '.join(self.rng.sample(used, self.rng.randint(1, len(used))))})" if used else "0"
        items += [Node("item", asked, " AS g")] * self.chance(0.5)
        having = self.having(scope, 0.2)
        if used and self.chance(0.15):
            having = Seq([Node("bool", f"({asked} {self.rng.choice(['= 0', '> 0', '= 1'])})")], " AND ", " HAVING ")
        return Node("query", "SELECT ", Seq(items, least=1), " FROM ", source, self.where(scope, 0.4), clause, having)

    def sets(self, keys):
        """An item of GROUP BY that is made of grouping sets."""
        way = self.rng.choice(["ROLLUP", "CUBE", "SETS", "SETS"])
        if way != "SETS":
            return self.listed(way, keys)
        some = [self.rng.choice([self.listed, self.together, self.together])(None, keys) for _ in range(3)]
        return Node("sets", "GROUPING SETS (", Seq(some[: self.rng.choice([1, 2, 3])], least=1), ")")

    def listed(self, word, keys):
        """ROLLUP or CUBE of keys, some of which stand together."""
        some = self.rng.sample(keys, self.rng.randint(1, min(3, len(keys))))
        items = [self.together(None, keys, 2) if self.chance(0.15) else key for key in some]
        return Node("sets", word or self.rng.choice(["ROLLUP", "CUBE"]), "(", Seq(items, least=1), ")")

    def together(self, _, keys, least=0):
        """Keys in parentheses."""
        return Node("set", f"({', '.join(self.rng.sample(keys, self.rng.randint(min(least, len(keys)), len(keys))))})")
