"""A statement with its runs: once, with other literals as a template, prepared; in a time zone, over views."""

from tree import Order, literals, walk

# What is compared of a statement: nothing, as of one that prepares what follows or cleans up behind it; whether it
# fails; its rows.
NOTHING, CLEANING, FAILURE, ROWS = range(4)


class Query:
    """A statement with its views, and the texts of its literals in each run."""

    # Whether what a statement does is seen by those that follow.
    is_sequence = False

    def __init__(self, shape, statement, views):
        self.shape, self.statement, self.views = shape, statement, views
        self.runs = [{}]
        self.is_prepared = False
        self.zone = None

    def ordered(self):
        """Whether the order of rows is compared."""
        return any(isinstance(part, Order) for part in walk(self.statement))

    def steps(self):
        """Statements for Warpcube and for DuckDB, with what is compared; texts are rendered as asked for."""
        if self.zone:
            yield f"SET TimeZone = '{self.zone}'", f"SET TimeZone = '{self.zone}'", NOTHING
        for name, view in self.views:
            text = f"CREATE OR REPLACE VIEW {name} AS "
            yield text + view.sql(), text + view.sql(True), NOTHING
        bound = [literal for literal in literals(self.statement) if literal.is_bound] if self.is_prepared else []
        for number, run in enumerate(self.runs):
            for literal, text in run.items():
                literal.parts = [text]
            ours, theirs = self.statement.sql(), self.statement.sql(True)
            if not bound:
                yield ours, theirs, ROWS
                continue
            if number == 0:
                yield prepared(self.statement, bound), theirs, NOTHING
            yield executed(bound), theirs, ROWS
        if bound:
            yield "DEALLOCATE judged", "SELECT 1", CLEANING
        if self.zone:
            yield "SET TimeZone = 'UTC'", "SET TimeZone = 'UTC'", CLEANING


def executed(bound):
    """EXECUTE with the values of the literals that PREPARE left out."""
    values = ", ".join(literal.sql() for literal in bound)
    return f"EXECUTE judged({values})" if values else "EXECUTE judged"


def prepared(statement, bound):
    """PREPARE with a placeholder for each of these literals."""
    kept = [literal.parts for literal in bound]
    for number, literal in enumerate(bound):
        literal.parts = [f"${number + 1}"]
    text = f"PREPARE judged AS {statement.sql()}"
    for literal, parts in zip(bound, kept):
        literal.parts = parts
    return text
