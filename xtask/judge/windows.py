"""Functions over windows: frames, FILTER, IGNORE NULLS, offsets and defaults, and windows that go on from a named one.

What depends on the order of peers is drawn over an order without peers. PostgreSQL and DuckDB spell IGNORE NULLS in
different places.
"""

from sources import Sources
from tree import Node, Seq, Spelling

ROWS = [
    "UNBOUNDED PRECEDING AND CURRENT ROW",
    "2 PRECEDING AND CURRENT ROW",
    "1 PRECEDING AND 1 FOLLOWING",
    "CURRENT ROW AND UNBOUNDED FOLLOWING",
    "3 PRECEDING AND 1 PRECEDING",
    "1 FOLLOWING AND 2 FOLLOWING",
    "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
]
RANGES = ["10 PRECEDING AND 5 FOLLOWING", "CURRENT ROW AND 100 FOLLOWING", "0 PRECEDING AND CURRENT ROW"]
PEERS = ["", " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"]
PEERS += [f" GROUPS BETWEEN {bounds}" for bounds in ROWS]
SPANS = ["INTERVAL '40 days' PRECEDING AND CURRENT ROW", "INTERVAL '1 day' PRECEDING AND INTERVAL '400 days' FOLLOWING"]
OFFSETS = ["", ", 2", ", 0", ", -1", ", -3", ", 1", ", 40", ", NULL"]


class Windows(Sources):
    """Draws statements with windows."""

    def by(self, scope):
        """PARTITION BY, or nothing."""
        partition = [Node("part", self.column(scope, self.rng.choice(["int", "text", "bool", "float"])))]
        return Seq(partition if self.chance(0.6) else [], ", ", "PARTITION BY ", " ")

    def total(self, scope):
        """ORDER BY that leaves no peers."""
        first = Seq([Node("sort", self.column(scope, self.any(scope)[1]), self.direction())], ", ", "", ", ")
        keys = ", ".join(f"{key} ASC NULLS LAST" for key in scope.keys)
        return Node("sort", "ORDER BY ", first, keys)

    def ignoring(self):
        """What stands behind the arguments: nothing, or IGNORE NULLS."""
        pick = self.rng.random()
        if pick < 0.4:
            return Spelling(") IGNORE NULLS", " IGNORE NULLS)")
        return ")" if pick < 0.9 else Spelling(") RESPECT NULLS", " RESPECT NULLS)")

    def moved(self, scope):
        """LAG and LEAD."""
        argument, kind = self.any(scope, 0)
        offset = self.rng.choice(OFFSETS)
        default = [", ", self.literal(kind)] if offset and kind in DEFAULTS and self.chance(0.3) else []
        return Node("call", self.rng.choice(["lag(", "lead("]), argument, offset, *default, self.ignoring())

    def valued(self, scope):
        """A value of a row of the frame."""
        name = self.rng.choice(["first_value(", "last_value(", "nth_value("])
        place = self.rng.choice([", 1", ", 2", ", 3"]) if name == "nth_value(" else ""
        return Node("call", name, self.any(scope, 0)[0], place, self.ignoring())

    def totalled(self, scope):
        """An aggregate over the frame, maybe of some of its rows."""
        call = self.rng.choice(
            [
                lambda: Node("call", "sum(", self.leaf(scope, self.rng.choice(["int", "float", "decimal"])), ")"),
                lambda: Node("call", "count(", self.any(scope, 0)[0], ")"),
                lambda: Node("call", "count(*)"),
                lambda: Node("call", self.rng.choice(["min(", "max("]), self.any(scope, 0)[0], ")"),
                lambda: Node("call", "avg(", self.leaf(scope, self.rng.choice(["int", "float"])), ")"),
                lambda: Node("call", "sum(DISTINCT ", self.leaf(scope, self.rng.choice(["int", "decimal"])), ")"),
                lambda: Node("call", "count(DISTINCT ", self.any(scope, 0)[0], ")"),
            ]
        )()
        if self.chance(0.35):
            return Node("call", call, " FILTER (WHERE ", self.bool(scope, 1), ")")
        return call

    def window_call(self, scope):
        """A function over a window; what depends on the order of peers has none."""
        by, total = self.by(scope), self.total(scope)
        pick = self.rng.randrange(8)
        if pick == 0:
            name = self.rng.choice(
                ["row_number()", "rank()", "dense_rank()", "ntile(3)", "percent_rank()", "cume_dist()"]
            )
            return self.over(name, by, total, "")
        if pick in (1, 2):
            return self.over(self.moved(scope), by, total, "")
        if pick == 3:
            unit = self.rng.choice([" ROWS", " ROWS", " GROUPS"])
            return self.over(self.valued(scope), by, total, f"{unit} BETWEEN {self.rng.choice(ROWS)}")
        call = self.totalled(scope)
        if pick in (4, 5):
            return self.over(call, by, total, f" ROWS BETWEEN {self.rng.choice(ROWS)}")
        if pick == 6 and scope.of("timestamp") and self.chance(0.25):
            order = Node("sort", "ORDER BY ", self.column(scope, "timestamp"), self.direction())
            return self.over(call, by, order, f" RANGE BETWEEN {self.rng.choice(SPANS)}")
        if pick == 6:
            name = scope.keys[0].replace(".id", self.rng.choice([".n", ".k", ".id"]))
            order = Node("sort", f"ORDER BY {name}{self.direction()}")
            return self.over(call, by, order, f" RANGE BETWEEN {self.rng.choice(RANGES)}")
        peers = Node("sort", "ORDER BY ", self.column(scope, self.any(scope)[1]), self.direction())
        return self.over(call, by, peers, self.rng.choice(PEERS))

    def over(self, call, by, order, frame):
        """A call with its window: written out, named, or going on from a named one."""
        way = self.rng.random()
        if way < 0.6:
            return Node("window", call, " OVER (", by, order, frame, ")")
        name = f"w{len(self.named)}"
        if way < 0.75:
            self.named.append(Node("named", f"{name} AS (", by, order, frame, ")"))
            return Node("window", call, f" OVER {name}")
        if way < 0.85:
            self.named.append(Node("named", f"{name} AS (", by, ")"))
            return Node("window", call, f" OVER ({name} ", order, frame, ")")
        if way < 0.92:
            self.named.append(Node("named", f"{name} AS (", by, order, ")"))
            return Node("window", call, f" OVER ({name}{frame})")
        self.named.append(Node("named", f"{name} AS (", by, ")"))
        self.named.append(Node("named", f"{name}b AS ({name} ", order, ")"))
        return Node("window", call, f" OVER ({name}b{frame})" if frame else f" OVER {name}b")

    def window(self):
        """Functions over windows."""
        source, scope = self.rng.choice([self.base, self.base, self.derived, self.joined, self.grouped])()
        self.named = []
        items = [
            Node("item", self.window_call(scope), f" AS c{number}") for number in range(self.rng.choice([1, 1, 2, 3]))
        ]
        named = [Seq(self.named, ", ", " WINDOW ")] if self.named else []
        return Node(
            "query",
            "SELECT ",
            Seq([*scope.keys, *items], least=1),
            " FROM ",
            source,
            self.where(scope, 0.4),
            *named,
            self.order(scope, 0.3),
        )

    def qualified(self):
        """Rows that a condition on windows keeps, the first of each partition among them."""
        source, scope = self.rng.choice([self.base, self.base, self.derived, self.joined, self.grouped])()
        self.named = []
        name = self.rng.choice(["row_number()", "rank()", "dense_rank()", "ntile(2)"])
        place = self.over(Node("call", name), self.by(scope), self.total(scope), "")
        sign = self.rng.choice([" <= ", " < ", " = ", " BETWEEN 2 AND "])
        tests = [Node("bool", "(", place, sign, self.literal_of("int", ["1", "2", "3", "10"]), ")")]
        if self.chance(0.3):
            tests.append(Node("bool", "(", self.window_call(scope), self.rng.choice([" IS NULL)", " IS NOT NULL)"])))
        if self.chance(0.3):
            tests.append(self.bool(scope, 1))
        items = [Node("item", self.any(scope, 1)[0], " AS c0")] * self.chance(0.5)
        items += [Node("item", self.window_call(scope), " AS c1")] * self.chance(0.3)
        named = [Seq(self.named, ", ", " WINDOW ")] if self.named else []
        kept = Seq(tests, self.rng.choice([" AND ", " AND ", " OR "]), " QUALIFY ", least=1)
        shown = Seq([*scope.keys, *items], least=1)
        return Node("query", "SELECT ", shown, " FROM ", source, self.where(scope, 0.4), *named, kept)


# Kinds whose literals have the type of every column of the kind.
DEFAULTS = ["int", "text", "bool", "date", "timestamp", "float"]
