"""SQL as a tree of text: rendered for both engines, varied by its literals, and shrunk.

Most text is the same for both; what the engines spell differently is a `Spelling`, or a node with a text of its own
for each.

A `Node` is a piece of SQL with a type (of its value, or of its role); a `Seq` is a list whose items may be dropped
one by one. Shrinking knows no SQL: it drops items and puts a descendant in the place of an ancestor of the same type,
and keeps whatever still shows the difference. A candidate that is no longer valid fails in both engines alike.
"""


class Node:
    """A piece of SQL: parts in order, each text, a `Node` or a `Seq`."""

    def __init__(self, kind, *parts):
        self.kind, self.parts = kind, list(parts)

    def sql(self, theirs=False):
        """The text for Warpcube, or for DuckDB."""
        return "".join(text(part, theirs) for part in self.parts)


def text(part, theirs=False):
    """The text of a part."""
    return part if isinstance(part, str) else part.sql(theirs)


class Spelling(Node):
    """A word that the engines spell differently."""

    def __init__(self, ours, theirs):
        super().__init__("spelling")
        self.ours, self.theirs = ours, theirs

    def sql(self, theirs=False):
        """The text for Warpcube, or for DuckDB."""
        return self.theirs if theirs else self.ours


class Seq:
    """Items with a separator, of which at least `least` stay; nothing at all is written if there are none."""

    def __init__(self, items, separator=", ", before="", after="", least=0):
        self.parts, self.separator, self.before, self.after, self.least = list(items), separator, before, after, least

    def sql(self, theirs=False):
        """The text for Warpcube, or for DuckDB."""
        if not self.parts:
            return ""
        items = self.separator.join(text(part, theirs) for part in self.parts)
        return self.before + items + self.after


class Literal(Node):
    """A literal, one of a pool of texts; another is drawn for the next instance of a template."""

    is_bound = False

    def __init__(self, kind, pool, rng):
        super().__init__(kind, rng.choice(pool))
        self.pool = pool

    def reroll(self, rng):
        """Draws another text."""
        self.parts = [rng.choice(self.pool)]


def is_column(node):
    """Whether a node is a column and no more."""
    return type(node) is Node and len(node.parts) == 1 and isinstance(node.parts[0], str) and node.kind != "null"


class Order(Node):
    """ORDER BY of a whole statement by what tells all rows apart, and LIMIT: the order of its rows is compared."""


def walk(node):
    """All nodes and lists of a tree, parents first."""
    yield node
    for part in node.parts:
        if not isinstance(part, str):
            yield from walk(part)


def literals(node):
    """The literals of a tree in the order of the text; one that stands in several places comes once."""
    return list(dict.fromkeys(part for part in walk(node) if isinstance(part, Literal)))


def edits(root):
    """Single changes that make the tree smaller, as pairs of functions that make and undo them."""

    def dropping(holder, index):
        taken = holder.parts[index]
        return lambda: holder.parts.pop(index), lambda: holder.parts.insert(index, taken)

    def replacing(holder, index, by):
        taken = holder.parts[index]

        def put(value):
            holder.parts[index] = value

        return lambda: put(by), lambda: put(taken)

    found = []
    for holder in walk(root):
        if isinstance(holder, Seq):
            if len(holder.parts) > holder.least:
                found += [dropping(holder, index) for index in range(len(holder.parts))]
        for index, part in enumerate(holder.parts):
            if isinstance(part, Node):
                inner = [other for other in walk(part) if other is not part and isinstance(other, Node)]
                found += [replacing(holder, index, other) for other in inner if other.kind == part.kind]
    return found


def shrink(root, still_differs, tries):
    """Makes the tree smaller as long as `still_differs()` holds, by at most so many tries."""
    progress = True
    while progress and tries > 0:
        progress = False
        for make, undo in edits(root):
            length = len(root.sql())
            make()
            if len(root.sql()) >= length:
                undo()
                continue
            tries -= 1
            if still_differs():
                progress = True
                break
            undo()
            if tries <= 0:
                return
