"""Statements: the shapes of SELECT."""

import tables
from expressions import ZONES, Scope
from tree import Literal, Node, Order, Seq
from windows import Windows


class Queries(Windows):
    """Draws whole statements."""

    def order(self, scope, share=0.4):
        """ORDER BY what tells rows apart, maybe with LIMIT."""
        if not self.chance(share):
            return Seq([])
        items = [Node("sort", self.any(scope, 1)[0], self.direction()) for _ in range(self.rng.choice([0, 1, 1, 2]))]
        items = [item for item in items if not isinstance(item.parts[0], Literal)]
        keys = [Node("sort", key, self.direction()) for key in scope.keys]
        limit = f" LIMIT {self.rng.choice([0, 1, 3, 10, 50])}" if self.chance(0.6) else ""
        skip = f" OFFSET {self.rng.choice([1, 5, 40])}" if limit and self.chance(0.3) else ""
        before = [Seq(items, ", ", "", ", ")] if items else []
        return Seq([Order("order", " ORDER BY ", *before, Seq(keys, least=len(keys)), limit, skip)])

    def plain(self):
        """SELECT of expressions from a source with a filter."""
        source, scope = self.source()
        items = [
            Node("item", self.any(scope)[0], f" AS c{number}") for number in range(self.rng.choice([1, 2, 3, 4]))
        ]
        if self.chance(0.15):
            return Node("query", "SELECT DISTINCT ", Seq(items, least=1), " FROM ", source, self.where(scope))
        return Node("query", "SELECT ", Seq(items, least=1), " FROM ", source, self.where(scope), self.order(scope))

    def star(self):
        """All columns of the rows that a filter keeps."""
        source, scope = self.rng.choice([self.base, self.derived])()
        return Node("query", "SELECT * FROM ", source, self.where(scope, 1), self.order(scope, 0.2))

    def counted(self):
        """How many rows a filter keeps, which pruning alone may answer."""
        source, scope = self.source()
        return Node("query", "SELECT count(*) AS c0 FROM ", source, self.where(scope, 1))

    def nested(self):
        """Two filters of one column, most of them IN lists: in a subquery, in a view, or on both sides of a join."""
        name, kind = self.rng.choice([column for column in PLAIN_COLUMNS if column[1] != "bool"])
        inner, scope = self.base(["t", "r", "m", "tiny"])
        prefix = scope.keys[0][:-2]

        def filtered(column):
            subject = Node(kind, column)
            if self.chance(0.7):
                return self.values(kind, subject, 0.15)
            return self.predicate(Scope([(column, kind)], ["id"]), 0, kind)

        items = Node("items", f"count(*) AS c0, min({prefix}id) AS c1")
        if self.chance(0.3):
            other, more = self.base(["r", "m", "tiny"])
            theirs = more.keys[0][:-2] + name
            conditions = [filtered(prefix + name), filtered(theirs)]
            source = Node("source", inner, " JOIN ", other, f" ON {prefix}{name} = {theirs}")
            return Node("query", "SELECT ", items, " FROM ", source, Seq(conditions, " AND ", " WHERE "))
        conditions = Seq([filtered(prefix + name) for _ in range(self.rng.choice([1, 1, 2]))], " AND ", " WHERE ")
        source, outer = self.around_or_view(Node("query", "SELECT * FROM ", inner, conditions))
        column = outer.keys[0][:-2] + name
        joint = self.rng.choice([" AND ", " AND ", " OR "])
        kept = Seq([filtered(column) for _ in range(self.rng.choice([1, 1, 2]))], joint, " WHERE ")
        items = Node("items", f"count(*) AS c0, min({outer.keys[0]}) AS c1")
        return Node("query", "SELECT ", items, " FROM ", source, kept)

    def semi(self):
        """EXISTS, IN and their negations over a subquery."""
        (source, one), (inner, other) = self.source(), self.base()
        _, kind = self.any(one)
        if self.chance(0.5):
            conditions = [self.predicate(other, 1)] if self.chance(0.7) else []
            if self.chance(0.35):
                name, sign = self.rng.choice(["id", "k", "n"]), self.rng.choice(["=", "<", ">="])
                mine, theirs = (scope.keys[0].replace(".id", "." + name) for scope in (one, other))
                conditions.append(Node("bool", f"({theirs} {sign} {mine})"))
            inside = Seq(conditions, " AND ", " WHERE ")
            column = self.column(other, kind).sql()
            test = Node(
                "bool",
                "(",
                self.leaf(one, kind),
                self.rng.choice([" IN ", " NOT IN "]),
                f"(SELECT {column} FROM ",
                inner,
                inside,
                "))",
            )
        else:
            name = self.rng.choice(["id", "k", "n", "c", "d", "dt"])
            link = f"{one.keys[0].replace('.id', '.' + name)} = {other.keys[0].replace('.id', '.' + name)}"
            conditions = [Node("bool", f"({link})")] + [self.predicate(other, 1)] * self.chance(0.6)
            test = Node(
                "bool",
                self.rng.choice(["(EXISTS ", "(NOT EXISTS "]),
                "(SELECT 1 FROM ",
                inner,
                Seq(conditions, " AND ", " WHERE ", least=1),
                "))",
            )
        if self.chance(0.12):
            source, one = self.base(["t", "r", "m"])
            test = self.row_in_query(one, inner, other, Seq([self.predicate(other, 1)], " AND ", " WHERE "))
        if self.chance(0.25):
            around = self.rng.choice([" IS NULL)", " IS NOT TRUE)", " IS FALSE)", " OR "])
            more = [self.predicate(one, 1), ")"] if around == " OR " else []
            test = Node("bool", "(", test, around, *more)
        conditions = [test] + [self.predicate(one, 1)] * self.chance(0.4)
        item = Node("item", self.any(one)[0], " AS c0")
        keys = ", ".join(one.keys)
        return Node(
            "query",
            "SELECT ",
            Seq([item, keys], least=1),
            " FROM ",
            source,
            Seq(conditions, " AND ", " WHERE ", least=1),
            self.order(one, 0.3),
        )

    def scalar(self):
        """Scalar subqueries of one aggregate, correlated by equality or not."""
        (source, one), (inner, other) = self.base(["t", "r", "m"]), self.base()
        aggregate, kind = self.simple_aggregate(other)
        conditions = [self.predicate(other, 1)] if self.chance(0.5) else []
        if self.chance(0.6):
            name = self.rng.choice(["id", "k", "n", "c"])
            link = f"{one.keys[0].replace('.id', '.' + name)} = {other.keys[0].replace('.id', '.' + name)}"
            conditions.append(Node("bool", f"({link})"))
        value = Node("scalar", "(SELECT ", aggregate, " FROM ", inner, Seq(conditions, " AND ", " WHERE "), ")")
        if self.chance(0.5):
            return Node(
                "query",
                "SELECT ",
                one.keys[0],
                ", ",
                value,
                " AS c0 FROM ",
                source,
                self.where(one, 0.5),
                self.order(one, 0.3),
            )
        compared = Node(
            "bool", self.leaf(one, kind), self.rng.choice([" = ", " < ", " >= ", " IS DISTINCT FROM "]), value
        )
        return Node("query", "SELECT ", one.keys[0], " FROM ", source, Seq([compared], " AND ", " WHERE "))

    def united(self):
        """Set operations, with and without ALL."""
        names = self.rng.sample(
            [(name, kind) for name, _, kind in tables.COLUMNS if name != "id"], self.rng.choice([1, 1, 2])
        )
        arms = []
        for _ in range(self.rng.choice([2, 2, 3])):
            source, scope = self.rng.choice([self.base, self.derived])()
            prefix = scope.keys[0][:-2]
            items = ", ".join(f"{prefix}{name} AS c{number}" for number, (name, _) in enumerate(names))
            arms.append(Node("arm", f"SELECT {items} FROM ", source, self.where(scope, 0.8)))
        words = [self.rng.choice(["UNION", "INTERSECT", "EXCEPT"]) + self.rng.choice(["", " ALL"]) for _ in arms[1:]]
        node = arms[0]
        for word, arm in zip(words, arms[1:]):
            node = Node("arm", "(", node, f") {word} (", arm, ")")
        return Node("query", node)

    def zoned(self):
        """Conversions between zones."""
        source, scope = self.base(["t", "r", "m", "tiny"])
        when, local = self.leaf(scope, "instant"), self.leaf(scope, "timestamp")
        zone = self.rng.choice(ZONES)
        # The first and the last days of the calendar are outside the range of one of the engines in some zone.
        inside = Node("bool", f"({scope.keys[0].replace('.id', '.tz')} > TIMESTAMPTZ '1900-01-01 00:00:00+00:00')")
        item = self.rng.choice(
            [
                lambda: Node("item", "(", when, f" AT TIME ZONE '{zone}')"),
                lambda: Node("item", "(", local, f" AT TIME ZONE '{zone}')"),
                lambda: Node(
                    "item", f"extract({self.rng.choice(['hour', 'day', 'year', 'minute'])} FROM ", when, ")"
                ),
                lambda: Node("item", "cast(", when, " AS DATE)"),
                lambda: Node("item", "cast(", when, " AS TIMESTAMP)"),
                lambda: Node("item", "cast(", local, " AS TIMESTAMPTZ)"),
                lambda: Node("item", f"date_trunc('{self.rng.choice(['day', 'hour', 'month'])}', ", when, ")"),
                lambda: Node(
                    "item", "(", when, self.rng.choice([" < ", " = ", " >= "]), self.bound("instant", when), ")"
                ),
                lambda: Node(
                    "item", "(", local, self.rng.choice([" < ", " = ", " >= "]), self.bound("instant", local), ")"
                ),
            ]
        )()
        return Node(
            "query", "SELECT ", scope.keys[0], ", ", item, " AS c0 FROM ", source, Seq([inside], " AND ", " WHERE ")
        )

    def overflowing(self):
        """Arithmetic and casts that may leave their type, one a statement."""
        source, scope = self.base(["t", "m", "tiny"])
        prefix = scope.keys[0][:-2]
        narrow = self.rng.choice(["i8", "i16", "i32", "i64"])
        column = f"{prefix}{narrow}"
        item = self.rng.choice(
            [
                f"{column} + {column}",
                f"{column} * {column}",
                f"- {column}",
                f"abs({column})",
                f"{column} - {prefix}{narrow}",
                f"cast({column} AS SMALLINT)",
                f"cast({prefix}i64 AS INTEGER)",
                f"cast({prefix}u64 AS BIGINT)",
                f"cast({prefix}u32 AS INTEGER)",
                f"{prefix}i64 + {prefix}n",
                f"{prefix}i64 - {prefix}k",
                f"sum({prefix}i64)",
                f"sum({prefix}n * {prefix}i32)",
                f"cast({prefix}p AS DECIMAL(20,2)) * {prefix}p",
                f"cast({prefix}p AS DECIMAL(5,2))",
            ]
        )
        kept = Node("bool", f"({scope.keys[0]} % {self.rng.choice([3, 11, 60])} = 1)")
        return Node("query", f"SELECT {item} AS c0 FROM ", source, Seq([kept], " AND ", " WHERE "))


PLAIN_COLUMNS = [(name, kind) for name, _, kind in tables.COLUMNS if name != "v"]
