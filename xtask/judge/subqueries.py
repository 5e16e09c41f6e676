"""Subqueries that are no plain select, constants beside aggregates, guarded quotients, samples, orders of files.

Of these, engines believe what does not hold: that a subquery without rows has none, that a filter may pass what it
stands above, that a sample is a table.
"""

import tables
from correlated import Correlated
from expressions import Scope
from tree import Node, Order, Seq, Spelling

# Integer division; DuckDB's `/` is of doubles.
QUOTIENT = Spelling(" / ", " // ")
QUOTIENTS = [("n", "k"), ("n", "g"), ("k", "g"), ("i32", "k"), ("id", "n"), ("p", "k"), ("n", "id")]


class Guarded(Node):
    """An aggregate of those rows alone that a condition keeps; DuckDB computes its argument for the others too."""

    def __init__(self, name, argument, condition):
        super().__init__("call", argument, condition)
        self.name = name

    def sql(self, theirs=False):
        """The text for Warpcube, or for DuckDB."""
        argument, condition = (part.sql(theirs) for part in self.parts)
        if theirs:
            return f"{self.name}(CASE WHEN {condition} THEN {argument} END)"
        return f"{self.name}({argument}) FILTER (WHERE {condition})"


class Subqueries(Correlated):
    """Draws these statements."""

    def firsts(self):
        """First rows by an order, inside a subquery: what stands around must not reach the rows behind them."""
        inner, scope = self.base(["t", "r", "m", "tiny"])
        prefix = scope.keys[0][:-2]
        name = self.rng.choice(["k", "n", "c", "dt", "d"])
        limit = f" LIMIT {self.rng.choice([0, 1, 5, 30])}{self.rng.choice(['', '', ' OFFSET 3'])}"
        order = f" ORDER BY {prefix}{name}{self.direction()}, {scope.keys[0]}{limit}"
        rows = Node("query", f"SELECT {prefix}{name} FROM ", inner, self.where(scope, 0.4), order)
        source, one = self.base(["t", "r", "m"])
        mine = one.keys[0].replace(".id", f".{name}")
        pick = self.rng.randrange(3)
        if pick == 0:
            test = Node("bool", f"({mine} {self.rng.choice(['IN', 'IN', 'NOT IN'])} (", rows, "))")
            return Node("query", "SELECT count(*) AS c0 FROM ", source, Seq([test], " AND ", " WHERE ", least=1))
        if pick == 1:
            items = f"count(*) AS c0, count(DISTINCT {name}) AS c1, min({name}) AS c2, max({name}) AS c3"
            kind = next(kind for column, _, kind in tables.COLUMNS if column == name)
            kept = self.where(Scope([(f"q.{name}", kind)], [f"q.{name}"]), 0.7)
            return Node("query", f"SELECT {items} FROM (", rows, ") AS q", kept)
        return Node("query", "SELECT count(*) AS c0 FROM ", source, " JOIN (", rows, f") AS q ON q.{name} = {mine}")

    def constants(self):
        """Filters of a constant that stands beside an aggregate without groups."""
        arms, words = [], ["'A'", "'B'", "1", "2"]
        pool = words[:2] if self.chance(0.5) else words[2:]
        for word in pool[: self.rng.choice([1, 2, 2])]:
            source, scope = self.base(["t", "r", "tiny", "none"])
            value = self.rng.choice(["count(*)", f"max({scope.keys[0]})", f"sum({scope.keys[0][:-2]}k)"])
            groups = self.rng.choice(["", "", "", f" GROUP BY GROUPING SETS (({scope.keys[0][:-2]}k), ())"])
            having = self.rng.choice(["", "", " HAVING count(*) > 30"])
            arms.append(
                Node(
                    "arm", f"SELECT {word} AS src, {value} AS n FROM ", source, self.where(scope, 0.4), groups, having
                )
            )
        body = Seq(arms, " UNION ALL ", least=1)
        test = self.rng.choice(
            [f"src = {pool[0]}", f"src <> {pool[0]}", f"src IN ({pool[1]})", "src IS NULL", "false"]
        )
        more = self.rng.choice(["", "", " AND n > 10", " OR n IS NULL"])
        if self.chance(0.4):
            return Node("query", "WITH q AS (", body, f") SELECT * FROM q WHERE {test}{more}")
        return Node("query", "SELECT * FROM (", body, f") AS q WHERE {test}{more}")

    def shared(self):
        """A table of WITH that is read twice or more, maybe by another one."""
        pick = self.rng.randrange(8)
        if pick == 0:
            return self.drawn_once()
        body, kinds = self.shared_body()
        scopes = [Scope([(f"{name}.{column}", kind) for column, kind in kinds], [f"{name}.id"]) for name in "pqr"]
        one, two, _ = scopes
        tables = [Node("table", "c AS (", body, ")")]
        reader = "c"
        if self.chance(0.3):
            tables.append(Node("table", "e AS (SELECT * FROM c AS p", self.where(one, 0.5), ")"))
            reader = "e"
        start = Node("with", "WITH ", Seq(tables, ", ", least=len(tables)))
        if pick <= 2:
            link = self.rng.choice(["p.id = q.id", "p.id = q.id", "p.id = q.id + 1", "p.g = q.g AND p.id <= q.id"])
            join = self.rng.choice(["JOIN", "LEFT JOIN", "FULL JOIN"] if "<=" not in link else ["JOIN"])
            both = Scope(one.columns + two.columns, one.keys + two.keys)
            items = "count(*) AS c0, sum(p.g) AS c1, min(q.c) AS c2, count(q.d) AS c3"
            source = Node("source", f"c AS p {join} {reader} AS q ON {link}")
            return Node("query", start, f" SELECT {items} FROM ", source, self.where(both, 0.5))
        if pick == 3:
            arms = [
                Node("arm", f"SELECT p.id, p.g, p.c FROM {name} AS p", self.where(one, 0.8)) for name in ("c", reader)
            ]
            kind = self.rng.choice([" UNION ALL ", " UNION ", " EXCEPT ", " INTERSECT "])
            return Node("query", start, " ", Seq(arms, kind, least=2))
        if pick == 4:
            value = self.rng.choice(["max(q.g)", "avg(q.g)", "min(q.id)", "count(*)"])
            sign = self.rng.choice(["=", ">=", "<", "<>"])
            inner = Node("subquery", f"(SELECT {value} FROM {reader} AS q", self.where(two, 0.5), ")")
            return Node("query", start, f" SELECT p.id, p.c FROM c AS p WHERE p.g {sign} ", inner)
        if pick == 5:
            word = self.rng.choice(["IN", "NOT IN"])
            column = self.rng.choice(["g", "id", "c"])
            inner = Node("subquery", f"(SELECT q.{column} FROM {reader} AS q", self.where(two, 0.7), ")")
            more = self.rng.choice(["", " OR p.id = 3", " IS NULL"])
            return Node("query", start, f" SELECT p.id, p.c FROM c AS p WHERE (p.{column} {word} ", inner, f"){more}")
        if pick == 6:
            items = f"(SELECT count(*) FROM c) AS c0, (SELECT sum(g) FROM {reader}) AS c1, (SELECT max(c) FROM c) AS c2"
            return Node("query", start, f" SELECT {items}")
        order = Order("order", " ORDER BY p.id, q.id, p.c NULLS LAST LIMIT 20")
        items = "p.id AS c0, q.id AS c1, p.c AS c2"
        source = Node("source", f"c AS p JOIN {reader} AS q ON p.g = q.g JOIN c AS r ON r.id = p.id")
        return Node("query", start, f" SELECT {items} FROM ", source, self.where(one, 0.5), order)

    def shared_body(self):
        """What a table of WITH does, and its columns."""
        pick = self.rng.randrange(5)
        if pick < 2:
            inner, scope = self.base(["t", "r", "m", "tiny", "none"])
            body = Node("query", "SELECT k AS id, sum(k) AS g, max(c) AS c, min(d) AS d, count(*) AS n FROM ", inner)
            body.parts += [self.where(scope, 0.5), " GROUP BY k"]
            return body, [("id", "int"), ("g", "int"), ("c", "text"), ("d", "float"), ("n", "int")]
        kinds = [("id", "int"), ("g", "int"), ("c", "text"), ("d", "float")]
        inner, scope = self.base(["m", "tiny", "none"])
        prefix = scope.keys[0][:-2]
        if pick == 2:
            items = f"DISTINCT {prefix}id % 7 AS id, {prefix}id % 3 AS g, {prefix}c AS c, {prefix}d AS d"
            return Node("query", f"SELECT {items} FROM ", inner, self.where(scope, 0.5)), kinds
        items = f"{prefix}id AS id, {prefix}id % 5 AS g, {prefix}c AS c, {prefix}d AS d"
        if pick == 3:
            order = Order("rows", f" ORDER BY {prefix}id LIMIT {self.rng.choice([1, 10, 30])}")
            return Node("query", f"SELECT {items} FROM ", inner, self.where(scope, 0.3), order.sql()), kinds
        other, more = self.base(["m", "tiny"])
        link = f"{prefix}id = {more.keys[0]}"
        kept = self.where(more, 0.5)
        return Node("query", f"SELECT {items} FROM ", inner, " JOIN ", other, f" ON {link}", kept), kinds

    def drawn_once(self):
        """What gives other rows each time is the same for all who read it."""
        inner, scope = self.base(["t", "m", "tiny", "none"])
        key = scope.keys[0]
        limited = Node("query", f"SELECT {key} AS id FROM ", inner, self.where(scope, 0.5), " LIMIT 20")
        drawn = Node("query", f"SELECT {key} AS id, random() AS x FROM ", inner, self.where(scope, 0.5))
        body, test = self.rng.choice(
            [
                (limited, "(SELECT count(*) FROM (SELECT id FROM c EXCEPT SELECT id FROM c) AS s)"),
                (limited, "(SELECT count(*) FROM c WHERE id NOT IN (SELECT id FROM c))"),
                (drawn, "(SELECT count(*) FROM c AS p JOIN c AS q ON p.id = q.id WHERE p.x <> q.x)"),
                (drawn, "(SELECT count(*) FROM c AS p LEFT JOIN c AS q ON p.x = q.x WHERE q.x IS NULL)"),
            ]
        )
        return Node("query", "WITH c AS (", body, f") SELECT {test} AS c0")

    def rowless(self):
        """Scalar subqueries that may have no row, of columns that cannot be NULL."""
        inner, scope = self.base(["tiny", "none", "m"])
        kind = self.rng.choice(["int", "text", "bool", "date"])
        value = self.rng.choice(
            [self.literal("int"), self.literal(kind), "count(*)", f"coalesce({scope.keys[0]}, 0)"]
        )
        rows = self.rng.choice([" WHERE false", f" WHERE {scope.keys[0]} < 0", f" WHERE {scope.keys[0]} = 101", ""])
        end = "" if value == "count(*)" else f" ORDER BY {scope.keys[0]} LIMIT 1"
        if value == "count(*)":
            end = self.rng.choice(["", " HAVING count(*) > 1000", " LIMIT 0"])
        found = Node("scalar", "(SELECT ", value, " FROM ", inner, rows, end, ")")
        item = self.rng.choice(
            [(found, " IS NULL"), (found,), ("(", found, " IS DISTINCT FROM NULL)"), ("(NOT (", found, " IS NULL))")]
        )
        if self.chance(0.3):
            return Node("query", "SELECT ", *item, " AS c0")
        source, one = self.base(["r", "tiny"])
        if self.chance(0.5):
            return Node("query", "SELECT ", one.keys[0], ", ", *item, " AS c0 FROM ", source)
        return Node(
            "query",
            "SELECT count(*) AS c0 FROM ",
            source,
            " WHERE ",
            found,
            self.rng.choice([" IS NULL", " IS NOT NULL"]),
        )

    def guarded(self):
        """Quotients and casts of those rows alone that a filter keeps."""
        source, scope = self.base(["t", "r", "m", "tiny"])
        prefix, key = scope.keys[0][:-2], scope.keys[0]
        over, under = self.rng.choice(QUOTIENTS)
        sign = " / " if over == "p" else QUOTIENT
        value = Node("quotient", f"({prefix}{over}", sign, f"{prefix}{under})")
        test = self.rng.choice([f"{prefix}{under} <> 0", f"{prefix}{under} > 0", f"{prefix}{under} IN (1, 2, 3)"])
        if self.chance(0.4):
            # The filter is of another column than the divisor: what it drops is known by the rows' numbers.
            value = Node("quotient", f"({prefix}n", QUOTIENT, f"{prefix}z)")
            first = self.rng.choice([0, 50, 100, 150, 200])
            test = self.rng.choice(
                [f"{key} BETWEEN {first + 1} AND {first + 49}", f"{key} % 50 <> 0", f"{key} IN (1, 7, 211)"]
            )
        elif self.chance(0.25):
            value = Node("cast", f"CAST({prefix}s AS INTEGER)")
            test = f"{prefix}s IN ('0', '12', '-7')"
        # Where the columns of a filter are selected too, a plan may compute the quotient below the filter.
        shown = f"{key}, {prefix}{under}" if self.chance(0.6) else key
        guard = Seq([test] + [self.predicate(scope, 1)] * self.chance(0.4), " AND ", " WHERE ", least=1)
        pick = self.rng.randrange(7)
        if pick == 0:
            return Node("query", f"SELECT {shown}, ", value, " AS c0 FROM ", source, guard)
        if pick == 1:
            inner = Node("query", f"SELECT {key} AS id, ", value, " AS c0 FROM ", source, guard)
            return Node(
                "query", "SELECT * FROM (", inner, f") AS q WHERE c0 {self.rng.choice(['> 1', '= 0', 'IS NULL'])}"
            )
        if pick == 2:
            calls = Node("items", "max(", value, ") AS c0, count(DISTINCT ", value, ") AS c1")
            return Node("query", "SELECT ", calls, " FROM ", source, guard)
        if pick == 3:
            return Node("query", "SELECT ", value, " AS c0, count(*) AS c1 FROM ", source, guard, " GROUP BY ", value)
        if pick == 4:
            call = Guarded(self.rng.choice(["sum", "max", "count"]), value, Node("bool", test))
            window = f" OVER (ORDER BY {key} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)" if self.chance(0.5) else ""
            return Node("query", f"SELECT {key}, " if window else "SELECT ", call, f"{window} AS c0 FROM ", source)
        if pick == 5:
            window = f" OVER (PARTITION BY {prefix}c ORDER BY {key})"
            return Node("query", f"SELECT {shown}, max(", value, f"){window} AS c0 FROM ", source, guard)
        other, more = self.base(["tiny", "m"])
        join = Node("source", source, " JOIN ", other, f" ON {more.keys[0]} = {key}")
        return Node("query", f"SELECT {shown}, ", value, " AS c0 FROM ", join, guard)

    def sampled(self):
        """Samples with a property that can be told: all rows, none, so many, none twice."""
        way, end = self.rng.choice(
            [
                ("(100 PERCENT)", ""),
                ("(0 PERCENT)", ""),
                (Spelling("BERNOULLI (100)", "BERNOULLI (100 PERCENT)"), ""),
                (Spelling("SYSTEM (0)", "SYSTEM (0 PERCENT)"), ""),
                (Spelling("BERNOULLI (100) REPEATABLE (7)", "BERNOULLI (100 PERCENT) REPEATABLE (7)"), ""),
                ("(7 ROWS)", ""),
                ("(0 ROWS)", ""),
                ("(100000 ROWS)", ""),
                ("(40 PERCENT)", " HAVING count(*) > count(DISTINCT s.id)"),
                ("(40 PERCENT)", " HAVING count(*) > 650"),
            ]
        )
        table = self.rng.choice(["t", "r", "m", "tiny", "none"])
        inner = self.rng.choice([table, f"(SELECT * FROM {table})", f"(SELECT id FROM {table} WHERE id % 2 = 0)"])
        items = "count(*) AS c0, count(DISTINCT s.id) AS c1"
        # A number of rows is taken before the filter; which rows these are is not said.
        kept = "" if "ROWS" in str(way) else self.rng.choice(["", " WHERE s.id < 50"])
        joined = self.rng.choice(["", "", " JOIN (SELECT 1 AS one) AS o ON true"])
        if self.chance(0.2):
            body = Node("query", f"SELECT {items} FROM q AS s TABLESAMPLE ", way, joined, kept, end)
            return Node("query", f"WITH q AS (SELECT * FROM {table}) ", body)
        return Node("query", f"SELECT {items} FROM {inner} AS s TABLESAMPLE ", way, joined, kept, end)

    def sorted(self):
        """What an order of rows may answer without a sort, over files that tell one, which holds or does not."""
        name = self.rng.choice(tables.SORTED)
        source, scope = self.base([name])
        prefix, key = scope.keys[0][:-2], scope.keys[0]
        column, told = tables.ORDERS[name]
        direction = self.rng.choice([told, told, self.direction()])
        value = f"{prefix}{column}"
        order, limit = f" ORDER BY {value}{direction}", self.rng.choice(
            ["", f" LIMIT {self.rng.choice([1, 10, 100])}"]
        )
        pick = self.rng.randrange(6)
        kept = self.where(scope, 0.4)
        if pick == 0:
            return Node("query", f"SELECT {value} FROM ", source, kept, Order("order", order, limit))
        if pick == 1:
            items = f"SELECT {value}, {key} FROM "
            return Node("query", items, source, kept, Order("order", f"{order}, {key}", limit))
        if pick == 2:
            return Node("query", f"SELECT {value} AS c0, count(*) AS c1 FROM ", source, kept, f" GROUP BY {value}")
        if pick == 3:
            call = self.rng.choice(["rank()", "dense_rank()", "count(*)", f"sum({prefix}k)", f"max({value})"])
            by = self.rng.choice(["", f"PARTITION BY {value} "])
            return Node("query", f"SELECT {key}, {call} OVER ({by}{order[1:]}) AS c0 FROM ", source, kept)
        if pick == 4:
            return Node("query", f"SELECT DISTINCT {value} FROM ", source, kept, Order("order", order, limit))
        other, more = self.base(tables.SORTED[:2] if column == "n" else ["m", "tiny"])
        theirs = more.keys[0][:-2] + column
        return Node("query", "SELECT count(*) AS c0 FROM ", source, " JOIN ", other, f" ON {value} = {theirs}", kept)

    def missing(self):
        """Filters and extremes of columns that have no bounds in some row groups."""
        source, scope = self.base([tables.UNBOUND])
        prefix = scope.keys[0][:-2]
        name, kind = self.rng.choice([("s", "text"), ("s", "text"), ("c", "text"), ("k", "int"), ("d", "float")])
        value = prefix + name
        tests = [self.predicate(Scope([(value, kind)], [value]), 0, kind)] * self.chance(0.5)
        if kind == "text" and self.chance(0.6):
            behind = self.rng.choice(
                [f"{value} > '🧿'", f"{value} LIKE '{tables.LAST}%'", f"{value} < '{tables.LAST}'"]
            )
            tests.append(Node("bool", f"({behind})"))
        kept = Seq(tests, " AND ", " WHERE ")
        limit = self.rng.choice([1, 5, 30])
        if self.chance(0.3):
            order = Order("order", f" ORDER BY {value}{self.direction()}, {scope.keys[0]} LIMIT {limit}")
            return Node("query", f"SELECT {scope.keys[0]} FROM ", source, kept, order)
        extreme = self.rng.choice(["min", "max"])
        shown = f"left({extreme}({value}), 20)" if kind == "text" else f"{extreme}({value})"
        items = f"{shown} AS c0, count(*) AS c1, count({value}) AS c2"
        return Node("query", f"SELECT {items} FROM ", source, kept)
