"""Cubes by brute force: elements with weighted edges, rows of facts, and cells from all of them.

What `docs/cubes.md` says of weights, measures, refreshes and changes, in the fewest lines: no index, no classes, no
order of work. Numbers are fractions; a cell is the sum over all rows below it.
"""

from copy import deepcopy
from fractions import Fraction


class Element:
    """An element. `key` is the name that the source has for it, none if it was made by hand."""

    def __init__(self, name, is_base, key=None):
        self.name, self.is_base, self.key = name, is_base, key
        # By child: the weight of the edge.
        self.children = {}


class Dimension:
    """Elements in no order that counts."""

    def __init__(self, name):
        self.name, self.elements, self.unlinked = name, [], set()
        self.has_levels = False
        # Names by the keys of elements that the source does not have now, and their edges with elements made by hand:
        # parent, child and weight, with the key in place of the element that is away.
        self.away, self.away_edges = {}, []

    def add(self, name, is_base, key=None):
        """A new element."""
        self.elements.append(Element(name, is_base, key))
        return self.elements[-1]

    def find(self, name):
        """The element of a name."""
        return next((element for element in self.elements if element.name == name), None)

    def of_key(self, key):
        """The element that the source names so."""
        return next((element for element in self.elements if element.key == key), None)

    def meant(self, key):
        """The base element that rows of the source have this key for: to the letter, else the only one in another case."""
        alike = [one for one in self.elements if one.key is not None and one.key.lower() == key.lower()]
        return self.of_key(key) or (alike[0] if len(alike) == 1 else None)

    def respelled(self, source):
        """This dimension with the keys of the source that are the only ones of their kind in another case."""
        made = deepcopy(self)
        is_by_hand = lambda key: made.away[key] not in (None, key) or any(
            key in edge[:2] for edge in [*made.away_edges, *made.unlinked]
        )
        away = [key for key in made.away if is_by_hand(key)]
        keys, taken = {one.key for one in source.elements}, {one.key for one in made.elements} | set(away)
        for olds in ([one.key for one in made.elements if one.key is not None], away):
            olds = [old for old in olds if old not in keys]
            for new in keys - taken:
                alike = [old for old in olds if old.lower() == new.lower()]
                is_sole = sum(key.lower() == new.lower() for key in keys) == 1
                taken |= {new} if alike and is_sole else set()
                if len(alike) == 1 and is_sole:
                    made.respell(alike[0], new)
        return made

    def respell(self, old, new):
        """Gives a key of the source another case."""
        of = lambda end: new if end == old else end
        for element in self.elements:
            if element.key == old:
                element.name = new if element.name == old else element.name
                element.key = new
        self.away = {of(key): name for key, name in self.away.items()}
        self.away_edges = [(of(parent), of(child), weight) for parent, child, weight in self.away_edges]
        self.unlinked = {(of(parent), of(child)) for parent, child in self.unlinked}

    def parents(self, child):
        """Elements with an edge to one."""
        return [element for element in self.elements if child in element.children]

    def below(self, element):
        """All elements at and below one."""
        found = [element]
        for child in element.children:
            found += [one for one in self.below(child) if one not in found]
        return found

    def weights(self, element):
        """Base elements below one with their weights, which multiply along paths and add over them."""
        if element.is_base:
            return {element: Fraction(1)}
        weights = {}
        for child, weight in element.children.items():
            for base, below in self.weights(child).items():
                weights[base] = weights.get(base, 0) + weight * below
        return weights

    def remove(self, element):
        """Takes an element away with its edges."""
        self.elements.remove(element)
        self.away_edges = [edge for edge in self.away_edges if element not in edge[:2]]
        for other in self.elements:
            other.children.pop(element, None)

    def loaded(self, source):
        """The source's dimension in the place of this one: edges that were unlinked by hand stay away."""
        self = self.respelled(source)
        is_known = lambda key: self.of_key(key) or key in self.away
        source.unlinked = {edge for edge in self.unlinked if all(is_known(key) for key in edge)}
        for parent, child in source.unlinked:
            if source.of_key(parent):
                source.of_key(parent).children.pop(source.of_key(child), None)
        source.away = {key: None for edge in source.unlinked for key in edge if not source.of_key(key)}
        return source

    def refreshed(self, source):
        """This dimension after a refresh: the source's elements under the names given here, elements made by hand, and
        edges that have one of them at an end; names and edges of elements that are away come back with them."""
        self = self.respelled(source)
        source, made = self.loaded(source), Dimension(self.name)
        now = {}
        for element in source.elements:
            old = self.of_key(element.key)
            name = old.name if old else self.away.get(element.key) or element.name
            copy = made.add(name, element.is_base, element.key)
            now[element.key] = copy
            if old:
                now[old] = copy
        for element in source.elements:
            for child, weight in element.children.items():
                now[element.key].children[now[child.key]] = weight
        for old in self.elements:
            if old.key is None:
                now[old] = made.add(old.name, old.is_base)
        edges = []
        for old in self.elements:
            for child, weight in old.children.items():
                if old.key is None or child.key is None:
                    edges.append((*(end if end in now else end.key for end in (old, child)), weight))
        for parent, child, weight in edges + self.away_edges:
            ends = [now.get(end, end) for end in (parent, child)]
            if any(isinstance(end, str) for end in ends):
                made.away_edges.append((*ends, weight))
            elif ends[0] not in made.below(ends[1]):
                ends[0].children.setdefault(ends[1], weight)
        made.unlinked, made.has_levels = source.unlinked, source.has_levels
        gone = {old.key: old.name for old in self.elements if old.key is not None and old not in now}
        made.away = {**self.away, **gone}
        for element in source.elements:
            made.away.pop(element.key, None)
        return made


class Measure:
    """A measure: its rule, and whether its rows need a value."""

    def __init__(self, name, rule, decimals):
        self.name, self.rule, self.decimals = name, rule, decimals


class Cube:
    """Dimensions, measures, and the rows of each tuple of base elements by their keys."""

    def __init__(self, dimensions, measures, rows):
        self.dimensions, self.measures, self.rows = dimensions, measures, rows

    def base_rows(self):
        """Rows by tuples of base elements, those whose elements are gone left out."""
        found = []
        for keys, values in self.rows.items():
            elements = [one.of_key(key) for one, key in zip(self.dimensions, keys)]
            if all(element is not None and element.is_base for element in elements):
                found.append((tuple(elements), values))
        return found

    def values(self):
        """What SQL has for base elements, by dimension and name: their keys where the base is a level."""
        value = lambda of, element: element.key if of.has_levels and element.key else element.name
        return [{one.name: value(of, one) for one in of.elements} for of in self.dimensions]

    def base_sums(self):
        """Names and elements of base cells with a value of the first measure, which is a sum, and that."""
        for elements, values in self.base_rows():
            filled = [value for value in values if value is not None]
            if filled:
                yield tuple(element.name for element in elements), elements, sum(filled)

    def forget(self, dimension, element):
        """Drops the facts of an element that is removed."""
        at = self.dimensions.index(dimension)
        self.rows = {keys: values for keys, values in self.rows.items() if keys[at] != element.key}

    def cells(self):
        """Every filled cell: names of elements and measure, and its value."""
        below = []
        for dimension in self.dimensions:
            targets = {}
            for element in dimension.elements:
                for base, weight in dimension.weights(element).items():
                    targets.setdefault(base, []).append((element.name, weight))
            below.append(targets)
        sums = {}
        for elements, values in self.base_rows():
            targets = [((), Fraction(1))]
            for element, of_dimension in zip(elements, below):
                targets = [
                    ((*names, name), product * weight)
                    for names, product in targets
                    for name, weight in of_dimension.get(element, [])
                ]
            for names, weight in targets:
                sums.setdefault(names, []).append((weight, values))
        cells = {}
        for names, terms in sums.items():
            for measure in self.measures:
                value = self.value(measure, terms)
                if value is not None:
                    cells[(*names, measure.name)] = value
        return cells

    @staticmethod
    def value(measure, terms):
        """The value of a cell; nothing if it is empty."""
        if measure.rule == "rows":
            return Fraction(sum(len(values) for _, values in terms))
        terms = [(weight, [value for value in values if value is not None]) for weight, values in terms]
        terms = [(weight, values) for weight, values in terms if values]
        if not terms:
            return None
        values = [value for _, values in terms for value in values]
        if measure.rule == "sum":
            return sum((weight * sum(values) for weight, values in terms), Fraction(0))
        if measure.rule == "count":
            return Fraction(len(values))
        if measure.rule == "avg":
            return sum(values, Fraction(0)) / len(values)
        return min(values) if measure.rule == "min" else max(values)


def rounded(value, decimals):
    """A fraction with so many decimals, halves away from zero."""
    units = abs(value) * 10**decimals
    whole = (2 * units.numerator + units.denominator) // (2 * units.denominator)
    return Fraction(whole if value >= 0 else -whole, 10**decimals)
