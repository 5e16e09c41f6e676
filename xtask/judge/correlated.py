"""Subqueries that refer to the rows around them: of all forms, within each other, and in all places of a statement.

Values are integers, so that any two of them compare. LIMIT stands behind an order of the one column that there is, and
windows have peers: what a subquery gives does not depend on the order of its rows.
"""

from expressions import Scope
from functions import Functions
from tree import Node, Order, Seq

SIGNS = ["=", "=", "=", "<", "<=", ">", ">=", "<>"]
SETS = ["UNION", "UNION ALL", "INTERSECT", "EXCEPT"]
TOTALS = ["count(*)", "count(", "sum(", "min(", "max(", "count(DISTINCT ", "sum(DISTINCT "]
TRUTHS = [" IS NULL", " IS NOT NULL", " IS TRUE", " IS NOT TRUE", " IS FALSE"]
PLACES = ["kept", "kept", "kept", "shown", "shown", "having", "grouped", "added", "ordered", "on", "beside", "set"]


class Correlated(Functions):
    """Draws these statements. The rows around are scopes, the innermost last."""

    def small(self):
        """A table of few rows: subqueries are computed for each row by one of the engines."""
        return self.base(["tiny", "tiny", "m", "none"])

    def number(self, scopes, outer=0.35):
        """An integer column of the innermost rows, or of rows around them."""
        place = len(scopes) - 1
        while place > 0 and self.chance(outer):
            place -= 1
        columns = [name for name in scopes[place].of("int") if not name.endswith((".v", ".z"))]
        return Node("int", self.rng.choice(columns or scopes[place].keys))

    def test(self, scopes, depth):
        """A condition, with a subquery if there is depth left."""
        pick = self.rng.random()
        if depth <= 0 or pick < 0.25:
            if self.chance(0.1):
                return Node("bool", "(", self.number(scopes), " IS NULL)")
            return Node("bool", "(", self.number(scopes), f" {self.rng.choice(SIGNS)} ", self.number(scopes, 0.6), ")")
        if pick < 0.45:
            tests = [self.test(scopes, depth), self.test(scopes, depth - 1)]
            return Node("bool", "(", Seq(tests, self.rng.choice([" AND ", " OR ", " OR "]), least=1), ")")
        if pick < 0.5:
            return Node("bool", "(NOT ", self.test(scopes, depth), ")")
        if pick < 0.56:
            when, then, other = (self.test(scopes, least) for least in (depth - 1, depth, depth - 1))
            return Node("bool", "(CASE WHEN ", when, " THEN ", then, " ELSE ", other, " END)")
        if pick < 0.62:
            return Node("bool", "(", self.test(scopes, depth), self.rng.choice(TRUTHS), ")")
        return self.compared(scopes, depth - 1)

    def compared(self, scopes, depth):
        """EXISTS, IN, ANY, ALL, or a comparison with the value of a subquery."""
        pick = self.rng.random()
        if pick < 0.3:
            return Node("bool", self.rng.choice(["(EXISTS (", "(NOT EXISTS ("]), self.rows(scopes, depth), "))")
        value = self.number(scopes)
        if pick < 0.6:
            return Node("bool", "(", value, self.rng.choice([" IN (", " NOT IN ("]), self.rows(scopes, depth), "))")
        sign = self.rng.choice(SIGNS)
        if pick < 0.8:
            word = self.rng.choice(["ANY", "ALL"])
            return Node("bool", "(", value, f" {sign} {word} (", self.rows(scopes, depth), "))")
        return Node("bool", "(", value, f" {sign} ", self.found(scopes, depth), ")")

    def tests(self, scopes, depth, least=0):
        """WHERE, mostly."""
        tests = [self.test(scopes, depth) for _ in range(self.rng.choice([least, 1, 1, 2]))]
        return Seq(tests, " AND ", " WHERE ", least=least)

    def summed(self, scopes):
        """An aggregate of the innermost rows."""
        name = self.rng.choice(TOTALS)
        call = Node("total", name) if name == "count(*)" else Node("total", name, self.number(scopes, 0), ")")
        if self.chance(0.15):
            return Node("total", call, " FILTER (WHERE ", self.test(scopes, 0), ")")
        return call

    def kept_groups(self, scopes, share):
        """HAVING of an aggregate, or nothing."""
        if not self.chance(share):
            return Seq([])
        test = Node("bool", "(", self.summed(scopes), self.rng.choice([" > ", " = ", " < "]), self.literal("int"), ")")
        return Seq([test], " AND ", " HAVING ")

    def found(self, around, depth):
        """The value of a scalar subquery."""
        source, own = self.joint(around, depth - 1)
        scopes = [*around, own]
        where = self.tests(scopes, depth)
        if self.chance(0.65):
            having = self.kept_groups(scopes, 0.15)
            return Node("scalar", "(SELECT ", self.summed(scopes), " FROM ", source, where, having, ")")
        end = f" ORDER BY o{self.direction()} LIMIT 1{self.rng.choice(['', '', ' OFFSET 1'])}"
        return Node("scalar", "(SELECT ", self.number(scopes, 0.15), " AS o FROM ", source, where, end, ")")

    def rows(self, around, depth):
        """A query of one integer column."""
        if depth > 0 and self.chance(0.12):
            arms = [self.rows(around, depth - 1) for _ in range(2)]
            return Node("rows", "(", arms[0], f") {self.rng.choice(SETS)} (", arms[1], ")")
        source, own = self.joint(around, depth)
        scopes = [*around, own]
        where, value = self.tests(scopes, depth), self.number(scopes, 0.15)
        way = self.rng.choice(["plain", "plain", "plain", "total", "groups", "sets", "first", "ranked", "running"])
        if way == "total":
            return Node("rows", "SELECT ", self.summed(scopes), " FROM ", source, where, self.kept_groups(scopes, 0.3))
        if way in ("groups", "sets"):
            key = self.number(scopes, 0)
            shown = key if self.chance(0.5) else self.summed(scopes)
            name = key.sql()
            sets = [f"ROLLUP({name})", f"GROUPING SETS (({name}), ())", f"GROUPING SETS (({name}))"]
            by = f" GROUP BY {self.rng.choice(sets) if way == 'sets' else name}"
            having = self.kept_groups(scopes, 0.4)
            if way == "groups" and depth > 0 and self.chance(0.3):
                # Of the rows, HAVING has the key alone.
                test = self.compared([*around, Scope([(name, "int")], [name])], depth - 1)
                having = Seq([test], " AND ", " HAVING ")
            return Node("rows", "SELECT ", shown, " FROM ", source, where, by, having)
        if way == "first":
            end = f" ORDER BY o{self.direction()} LIMIT {self.rng.choice([0, 1, 2, 5])}"
            end += self.rng.choice(["", "", " OFFSET 1"])
            return Node("rows", "SELECT ", value, " AS o FROM ", source, where, end)
        by, order = self.number(scopes, 0), self.number(scopes, 0)
        if way == "ranked":
            place = Node("place", "rank() OVER (PARTITION BY ", by, " ORDER BY ", order, self.direction(), ") <= 2")
            if self.chance(0.5):
                return Node("rows", "SELECT ", value, " FROM ", source, where, " QUALIFY ", place)
            inner = Node("query", "SELECT ", value, " AS o, ", place, " AS first FROM ", source, where)
            return Node("rows", "SELECT ranked.o FROM (", inner, ") AS ranked WHERE ranked.first")
        if way == "running":
            window = Node("window", " OVER (PARTITION BY ", by, " ORDER BY ", order, self.direction(), ")")
            call = Node("call", self.rng.choice(["sum(", "count("]), value, ")", window)
            return Node("rows", "SELECT ", call, " FROM ", source, where)
        word = self.rng.choice(["", "", "", "DISTINCT "])
        return Node("rows", f"SELECT {word}", value, " FROM ", source, where)

    def joint(self, around, depth):
        """What a subquery reads: a table, a join, a subquery, or a table with a LATERAL subquery beside it."""
        pick = self.rng.random()
        if depth <= 0 or pick < 0.6:
            return self.small()
        if pick < 0.7:
            alias = self.alias()
            scope = Scope([(f"{alias}.o", "int")], [f"{alias}.o"])
            return Node("source", "(", self.rows(around, depth - 1), f") AS {alias}(o)"), scope
        left, one = self.small()
        if pick < 0.85:
            return self.linked_join(around, left, one, depth - 1)
        alias = self.alias()
        inner = self.rows([*around, one], depth - 1)
        scope = Scope([*one.columns, (f"{alias}.o", "int")], [*one.keys, f"{alias}.o"])
        if self.chance(0.5):
            return Node("source", left, " CROSS JOIN LATERAL (", inner, f") AS {alias}(o)"), scope
        return Node("source", left, " LEFT JOIN LATERAL (", inner, f") AS {alias}(o) ON true"), scope

    def linked_join(self, around, left, one, depth):
        """A join, maybe with a subquery in its condition: of a join that keeps rows, over one of its sides."""
        right, other = self.small()
        scope = Scope(one.columns + other.columns, one.keys + other.keys)
        kind = self.rng.choice(["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        name = self.rng.choice(["id", "k", "g"])
        mine, theirs = (side.keys[0].replace(".id", f".{name}") for side in (one, other))
        conditions = [Node("bool", f"({mine} = {theirs})")]
        if self.chance(0.5):
            side = scope if kind == "JOIN" else self.rng.choice([one, other])
            conditions.append(self.test([*around, side], depth))
        return Node("source", left, f" {kind} ", right, " ON ", Seq(conditions, " AND ", least=1)), scope

    def correlated(self):
        """Subqueries in one place of a statement."""
        place, depth = self.rng.choice(PLACES), self.rng.choice([1, 1, 2])
        source, one = self.rng.choice([self.small, self.small, lambda: self.base(["r"])])()
        key = one.keys[0]
        if place == "kept":
            return Node("query", f"SELECT {key} FROM ", source, self.tests([one], depth, least=1))
        if place == "shown":
            items = [self.test([one], depth) if self.chance(0.5) else self.found([one], depth - 1) for _ in range(2)]
            items = [Node("item", item, f" AS c{number}") for number, item in enumerate(items)]
            return Node("query", f"SELECT {key}, ", Seq(items, least=1), " FROM ", source, self.where(one, 0.3))
        if place == "having":
            group = self.column(one, "int").sql()
            test = self.compared([Scope([(group, "int")], [group])], depth - 1)
            return Node("query", f"SELECT {group}, count(*) FROM ", source, f" GROUP BY {group} HAVING ", test)
        if place == "grouped":
            value = self.found([one], depth - 1) if self.chance(0.5) else self.test([one], depth)
            return Node("query", "SELECT ", value, " AS c0, count(*) AS c1 FROM ", source, " GROUP BY 1")
        if place == "added":
            value = self.found([one], depth - 1)
            return Node("query", "SELECT sum(", value, ") AS c0, count(", value, ") AS c1 FROM ", source)
        if place == "ordered":
            value = self.found([one], depth - 1)
            end = f"{self.direction()}, {key} LIMIT {self.rng.choice([1, 5, 30])}"
            order = Order("order", " ORDER BY ", value, end)
            return Node("query", f"SELECT {key} FROM ", source, self.where(one, 0.3), order)
        if place == "on":
            joined, both = self.linked_join([], source, one, depth)
            return Node("query", f"SELECT {', '.join(both.keys)} FROM ", joined)
        if place == "beside":
            word = self.rng.choice([" CROSS JOIN LATERAL (", ", LATERAL (", " LEFT JOIN LATERAL ("])
            end = ") AS l(o) ON true" if "LEFT" in word else ") AS l(o)"
            return Node("query", f"SELECT {key}, l.o FROM ", source, word, self.rows([one], depth), end)
        arms = [self.rows([], depth) for _ in range(2)]
        return Node("query", "(", arms[0], f") {self.rng.choice(SETS)} (", arms[1], ")")
