"""Statements that change tables, in sequence: each is compared, and then the whole table.

Both engines get a memory table, by CREATE TABLE AS or with constraints. A statement that fails has to fail in both,
and leave both tables as they were. EXPLAIN and PREPARE change nothing, which the table after them shows.
"""

from expressions import Scope
from query import CLEANING, FAILURE, NOTHING, ROWS, Query, executed, prepared
from forms import Forms
from tree import Literal, Node, Seq, Spelling, literals

# Columns of the table that is changed, and their types where they are written out.
COLUMNS = {
    "id": ("int", "INTEGER"),
    "k": ("int", "INTEGER"),
    "n": ("int", "BIGINT"),
    "g": ("int", "SMALLINT"),
    "d": ("float", "DOUBLE"),
    "p": ("decimal", "DECIMAL(12,2)"),
    "c": ("text", "VARCHAR"),
    "b": ("bool", "BOOLEAN"),
    "dt": ("date", "DATE"),
    "ts": ("timestamp", "TIMESTAMP"),
}
NEVER = ["false", "NULL", "k = NULL", "k IN (NULL)", "k = 1 AND k = 2", "1 = 2", "k <> k", "id IS NULL AND id = 1"]
# Constraints of the table, as they are written behind the columns' types or behind all columns.
CONSTRAINTS = {
    "id": ["", " PRIMARY KEY", " UNIQUE", " NOT NULL"],
    "k": ["", " DEFAULT 4", " CHECK (k < 60)", " CHECK (k IS NULL OR k > -50)"],
    "n": ["", " DEFAULT 100", " CHECK (n > -2000)"],
    "c": ["", " DEFAULT 'x'", " DEFAULT 'red'"],
    "b": ["", " DEFAULT true"],
}
TABLE_CONSTRAINTS = [
    "",
    "",
    ", UNIQUE (id, k)",
    ", PRIMARY KEY (id)",
    ", CHECK (k <> 77 OR n IS NULL)",
    ", UNIQUE (n)",
]
# What updates put into a column, besides drawn expressions; some fail for a row.
RAISING = {
    "k": ["(1000 / ({0}id - 7))", "CAST('1' || {0}c AS INTEGER)", "({0}k * 2000000000)", "({0}n % ({0}id - 7))"],
    "g": ["({0}n * 100)", "({0}id + 32760)"],
    "n": ["(1000 / ({0}id - 12))", "(100 / ({0}k - 3))"],
}


class Changes(Query):
    """Statements over one table."""

    is_sequence = True

    def __init__(self, create, statements):
        super().__init__("changes", Node("whole", create, "; ", Seq(statements, "; ")), [])

    def steps(self):
        """Statements for Warpcube and for DuckDB, with what is compared."""
        create, _, statements = self.statement.parts
        yield create.sql(), create.sql(True), NOTHING
        for statement in list(statements.parts):
            ours, theirs = statement.sql(), statement.sql(True)
            if statement.is_explained:
                yield f"EXPLAIN {ours}", f"EXPLAIN {theirs}", FAILURE
                yield WHOLE, WHOLE, ROWS
            bound = [literal for literal in literals(statement) if literal.is_bound]
            what = FAILURE if statement.kind == "truncate" else ROWS
            if statement.is_prepared:
                yield prepared(statement, bound), f"EXPLAIN {theirs}", FAILURE
                yield WHOLE, WHOLE, ROWS
                yield executed(bound), theirs, what
                yield "DEALLOCATE judged", "SELECT 1", CLEANING
            else:
                yield ours, theirs, what
            yield WHOLE, WHOLE, ROWS


WHOLE = "SELECT * FROM changed"


class Change(Node):
    """A statement that changes the table."""

    is_explained = is_prepared = False


class Changing(Forms):
    """Draws sequences."""

    def target(self, may_alias=True):
        """The table, with its columns as the statement names them."""
        alias = self.alias() if may_alias and self.chance(0.3) else ""
        prefix = f"{alias or 'changed'}."
        scope = Scope([(prefix + name, kind) for name, (kind, _) in self.columns.items()], [f"{prefix}id"])
        return f"changed AS {alias}" if alias else "changed", scope

    def created(self):
        """The table, with rows of another."""
        names = ["id", "k", "n"] + [name for name in list(COLUMNS)[3:] if self.chance(0.6)]
        self.columns = {name: COLUMNS[name] for name in names}
        source = self.rng.choice(["tiny", "tiny", "r", "m"])
        rows = f"SELECT {', '.join(names)} FROM {source}{self.rng.choice(['', ' WHERE id < 40', ' WHERE k < 5'])}"
        if self.chance(0.5):
            return Node("create", f"CREATE OR REPLACE TABLE changed AS {rows}"), []
        columns = []
        for name, (_, kind) in self.columns.items():
            columns.append(f"{name} {kind}" + self.rng.choice(CONSTRAINTS.get(name, [""])))
        more = self.rng.choice(TABLE_CONSTRAINTS)
        if "PRIMARY" in "".join(columns) and "PRIMARY" in more:
            more = ""
        create = f"CREATE OR REPLACE TABLE changed ({', '.join(columns)}{more})"
        return Node("create", create), [Change("insert", f"INSERT INTO changed {rows}")]

    def new_value(self, name, scope, more=None):
        """What an update puts into a column."""
        kind = self.columns[name][0]
        pick = self.rng.random()
        if pick < 0.06 and self.has_constraints:
            return "DEFAULT"
        if pick < 0.2 and name in RAISING:
            texts = [text for text in RAISING[name] if "}c" not in text or "c" in self.columns]
            return self.spelt(self.rng.choice(texts).format(scope.keys[0][:-2]))
        if pick < 0.28:
            inner = f"SELECT max(u.{name}) FROM tiny AS u WHERE u.id = {scope.keys[0]}"
            return Node("scalar", f"({inner})")
        if pick < 0.33:
            return Node("null", "NULL")
        if name == "id":
            return f"({scope.keys[0]} + {self.rng.choice([1, 1000, -1])})"
        if name == "g" or kind in ("decimal", "float"):
            return self.leaf(more if more and self.chance(0.6) else scope, kind)
        return self.of(more if more and self.chance(0.6) else scope, kind, 1)

    def spelt(self, text):
        """A text whose quotients are of integers in both engines."""
        return Spelling(text, text.replace("/", "//"))

    def assignments(self, scope, more=None):
        """SET of some columns."""
        names = self.rng.sample(
            [name for name in self.columns if name != "id" or self.chance(0.2)], self.rng.choice([1, 1, 2])
        )
        if len(names) == 2 and self.chance(0.15):
            return Seq(["k = " + scope.keys[0].replace(".id", ".id"), f"n = {scope.keys[0].replace('.id', '.k')}"])
        return Seq([Node("set", f"{name} = ", self.new_value(name, scope, more)) for name in names], least=1)

    def kept(self, scope, share=0.9):
        """WHERE: as for SELECT, or what keeps nothing, or a subquery."""
        pick = self.rng.random()
        if pick < 0.12:
            return (
                f" WHERE {self.rng.choice(NEVER).replace('k', scope.keys[0][:-2] + 'k').replace('id', scope.keys[0])}"
            )
        if pick < 0.35:
            source, inside = self.base(["tiny", "r", "m", "none"])
            name = self.rng.choice(["id", "k", "n"])
            mine, theirs = (other.keys[0].replace(".id", f".{name}") for other in (scope, inside))
            if self.chance(0.5):
                word = self.rng.choice(["IN", "IN", "NOT IN"])
                inner = Node("subquery", f"(SELECT {theirs} FROM ", source, self.where(inside, 0.6), ")")
                return Seq([Node("bool", f"{mine} {word} ", inner)], " AND ", " WHERE ")
            word = self.rng.choice(["EXISTS", "NOT EXISTS"])
            link = Seq([f"{theirs} = {mine}", self.predicate(inside, 1)], " AND ", least=1)
            inner = Node("subquery", "(SELECT 1 FROM ", source, " WHERE ", link, ")")
            return Seq([Node("bool", f"{word} ", inner)], " AND ", " WHERE ")
        return self.where(scope, share)

    def returning(self, scope):
        """RETURNING, or nothing."""
        if not self.chance(0.25):
            return ""
        if self.chance(0.3):
            return " RETURNING *"
        return Node("returning", " RETURNING ", scope.keys[0], ", ", self.any(scope, 1)[0], " AS e")

    def other(self):
        """Rows that FROM, USING and MERGE read; by id each comes once."""
        key = "id" if self.chance(0.85) else "k"
        if self.chance(0.25):
            return *self.value_rows(), key
        source, scope = self.base(["tiny", "r", "m", "none"])
        return source, scope, key

    def value_rows(self):
        """VALUES, which have types of their own, with a name."""
        name = self.alias()
        rows = [
            Node("row", f"({key}, {self.rng.choice(['1', '3', 'NULL'])}, {self.rng.randrange(-9, 90)}, {part})")
            for key in self.rng.sample(range(1, 40), self.rng.choice([1, 2, 5]))
            for part in [self.rng.choice(["0.5", "1.25", "7", "NULL"])]
        ]
        columns = [("id", "int"), ("k", "int"), ("n", "int"), ("p", "decimal")]
        scope = Scope([(f"{name}.{column}", kind) for column, kind in columns], [f"{name}.id"])
        return Node("values", "(VALUES ", Seq(rows, least=1), f") AS {name}(id, k, n, p)"), scope

    def delete(self):
        """DELETE, maybe with USING."""
        table, scope = self.target()
        if self.chance(0.25):
            source, more, key = self.other()
            link = f" WHERE {scope.keys[0].replace('.id', '.' + key)} = {more.keys[0].replace('.id', '.' + key)}"
            conditions = Seq([self.predicate(self.rng.choice([scope, more]), 1)] * self.chance(0.6), " AND ", " AND ")
            return Change("delete", f"DELETE FROM {table} USING ", source, link, conditions, self.returning(scope))
        return Change("delete", f"DELETE FROM {table}", self.kept(scope), self.returning(scope))

    def update(self):
        """UPDATE, maybe with FROM."""
        table, scope = self.target()
        if self.chance(0.3):
            source, more, key = self.other()
            link = f" WHERE {scope.keys[0].replace('.id', '.' + key)} = {more.keys[0].replace('.id', '.' + key)}"
            conditions = Seq([self.predicate(self.rng.choice([scope, more]), 1)] * self.chance(0.6), " AND ", " AND ")
            sets = self.assignments(scope, more)
            return Change(
                "update", f"UPDATE {table} SET ", sets, " FROM ", source, link, conditions, self.returning(scope)
            )
        return Change(
            "update", f"UPDATE {table} SET ", self.assignments(scope), self.kept(scope), self.returning(scope)
        )

    def insert(self):
        """INSERT of values or of a query, of all columns or of few in any order."""
        _, scope = self.target(may_alias=False)
        names = list(self.columns)
        if self.chance(0.6):
            names = ["id"] * self.chance(0.9) + self.rng.sample(names[1:], self.rng.randrange(1, len(names)))
            self.rng.shuffle(names)
        listed = f" ({', '.join(names)})" if names != list(self.columns) or self.chance(0.3) else ""
        if self.chance(0.5):
            rows = []
            for _ in range(self.rng.choice([1, 1, 2, 3])):
                rows.append(Node("row", "(", Seq([self.inserted(name) for name in names], least=len(names)), ")"))
            body = Node("values", " VALUES ", Seq(rows, least=1))
        else:
            source, more = self.base(["tiny", "r", "m"])
            if self.chance(0.2) and set(names) <= {"id", "k", "n", "p"}:
                source, more = self.value_rows()
            shift = self.rng.choice([0, 1000, 2000, 3000])
            items = [f"{more.keys[0]} + {shift}" if name == "id" else more.keys[0][:-2] + name for name in names]
            body = Node("query", f" SELECT {', '.join(items)} FROM ", source, self.where(more, 0.8))
        return Change("insert", f"INSERT INTO changed{listed}", body, self.returning(scope))

    def inserted(self, name):
        """A value of an inserted row."""
        if self.chance(0.1):
            return "DEFAULT" if self.has_constraints and self.chance(0.6) else Node("null", "NULL")
        if name == "id":
            return str(self.rng.choice([5, 7, 12, 5000, 5001, 5002, 5003]))
        kind = self.columns[name][0]
        literal = self.literal(kind)
        if name == "g":
            literal = Literal("int", ["1", "-3", "300"], self.rng)
        literal.is_bound = kind in ("int", "text", "date", "decimal")
        return literal

    def merge(self):
        """MERGE with two or three actions."""
        table, scope = self.target()
        source, more, key = self.other()
        link = f" ON {scope.keys[0].replace('.id', '.' + key)} = {more.keys[0].replace('.id', '.' + key)}"
        actions = []
        for _ in range(self.rng.choice([1, 1, 2])):
            test = self.matching(self.rng.choice([scope, more]))
            action = "DELETE" if self.chance(0.3) else Node("action", "UPDATE SET ", self.merged(scope, more))
            actions.append(Node("when", " WHEN MATCHED", test, " THEN ", action))
            # Actions behind one without a condition are an error, which is drawn now and then.
            if not test and self.chance(0.9):
                break
        if self.chance(0.6):
            names = ["id", "k", "n"] if self.chance(0.5) else list(self.columns)
            values = ", ".join(more.keys[0][:-2] + name for name in names)
            insert = f"INSERT ({', '.join(names)}) VALUES ({values})"
            actions.append(Node("when", " WHEN NOT MATCHED", self.matching(more), f" THEN {insert}"))
        if self.chance(0.25):
            actions.append(Node("when", " WHEN NOT MATCHED BY SOURCE", self.matching(scope), " THEN DELETE"))
        return Change("merge", f"MERGE INTO {table} USING ", source, link, Seq(actions, "", least=1))

    def matching(self, scope):
        """A condition of an action, or nothing."""
        return Node("and", " AND ", self.predicate(scope, 1)) if self.chance(0.4) else ""

    def merged(self, scope, more):
        """SET of a MERGE."""
        names = self.rng.sample([name for name in self.columns if name not in ("id", "g")], self.rng.choice([1, 2]))
        items = []
        for name in names:
            kind = self.columns[name][0]
            items.append(Node("set", f"{name} = ", self.leaf(self.rng.choice([more, more, scope]), kind)))
        return Seq(items, least=1)

    def truncate(self):
        """TRUNCATE."""
        return Change("truncate", self.rng.choice(["TRUNCATE TABLE changed", "TRUNCATE changed"]))

    def sequence(self):
        """A table and what changes it."""
        create, filled = self.created()
        self.has_constraints = bool(filled)
        ways = [self.delete, self.update, self.insert, self.merge, self.truncate]
        changes = [self.rng.choices(ways, [6, 7, 6, 4, 1])[0]() for _ in range(self.rng.choice([2, 3, 4, 6]))]
        for change in changes:
            pick = self.rng.random()
            change.is_explained, change.is_prepared = pick < 0.1, 0.1 < pick < 0.22 and change.kind != "truncate"
        return Changes(create, filled + changes)
