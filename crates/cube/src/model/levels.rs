//! Level hierarchies: dimensions made of columns such as year, quarter, month.
//!
//! A row gives one value a level, from the top down; its last value that is not NULL names a base element. NULL levels
//! are skipped, so that hierarchies may be ragged. An element is identified by its level and the values above it, not
//! by its name: the name is the value, and where elements share one, each of them is named by the values from the top
//! down to it (`2026-Q1-1`) and captioned by its own. Names once given stay when rows are added to a dimension.

use std::collections::HashSet;

use hashbrown::{Equivalent, HashMap};

use super::{Dimension, DimensionBuilder, Edge, Element, ElementId, ElementKind, Hierarchy, Member};
use crate::error::{ModelError, Path, Result};

/// Text between the values of a path.
const PATH_SEPARATOR: &str = "-";

/// Elements of a level hierarchy by their row values.
#[derive(Clone, Debug)]
pub struct LevelIndex {
    members: HashMap<MemberKey, ElementId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MemberKey {
    parent: Option<ElementId>,
    level: u16,
    value: String,
}

/// A [`MemberKey`] with a borrowed value; the fields hash in the same order.
#[derive(Hash)]
struct MemberRef<'a> {
    parent: Option<ElementId>,
    level: u16,
    value: &'a str,
}

impl Equivalent<MemberKey> for MemberRef<'_> {
    fn equivalent(&self, key: &MemberKey) -> bool {
        self.parent == key.parent && self.level == key.level && self.value == key.value
    }
}

impl LevelIndex {
    /// The index of a dimension's hierarchy, by its position in [`Dimension::hierarchies`].
    pub fn new(dimension: &Dimension, hierarchy: usize) -> Self {
        let mut members = HashMap::new();
        for id in &dimension.order {
            if let Some(member) = dimension.element(*id).member().filter(|m| usize::from(m.hierarchy) == hierarchy) {
                let Member { parent, level, value, .. } = member.clone();
                members.insert(MemberKey { parent, level, value }, *id);
            }
        }
        Self { members }
    }

    /// The element of a row: that of its last value that is not NULL; `None` if the row names no element.
    pub fn find(&self, values: &[Option<&str>]) -> Option<ElementId> {
        let mut found = None;
        for (level, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            found = Some(self.get(found, level as u16, value)?);
        }
        found
    }

    fn get(&self, parent: Option<ElementId>, level: u16, value: &str) -> Option<ElementId> {
        self.members.get(&MemberRef { parent, level, value }).copied()
    }
}

impl Dimension {
    /// The dimension of level columns, and the base element of every row (`None` where all values are NULL). Base
    /// elements come first in the order, then level by level upwards, each in the order of the rows.
    ///
    /// # Errors
    /// [`ModelError::LevelCount`]; [`ModelError::RaggedConflict`] if a row ends at an element that holds others;
    /// [`ModelError::SharedPath`]; [`ModelError::EmptyName`]; [`ModelError::TooMany`].
    pub fn from_levels<'a, R>(name: &str, levels: &[&str], rows: R) -> Result<(Self, Vec<Option<ElementId>>)>
    where
        R: IntoIterator<Item = &'a [Option<&'a str>]>,
    {
        let mut dimension = DimensionBuilder::new(name)?.finish()?;
        dimension.push_hierarchy(name, levels)?;
        let found = dimension.extend_levels(rows)?;
        let key = |id: &ElementId| {
            let element = dimension.element(*id);
            let level = element.member().map_or(0, |member| member.level);
            (element.kind != ElementKind::Base, std::cmp::Reverse(if element.base.is_some() { 0 } else { level }))
        };
        let mut order = dimension.order.clone();
        order.sort_by_key(key);
        dimension.order = order;
        dimension.topology.take();
        Ok((dimension, found))
    }

    /// Adds the elements of further rows to the first level hierarchy; returns the base element of every row. New
    /// elements are the last by position.
    ///
    /// # Errors
    /// As [`Dimension::from_levels`]; the dimension is then as before.
    pub fn extend_levels<'a, R>(&mut self, rows: R) -> Result<Vec<Option<ElementId>>>
    where
        R: IntoIterator<Item = &'a [Option<&'a str>]>,
    {
        let mut growth = Growth::new(self, 0)?;
        let found =
            rows.into_iter().map(|values| growth.descend(values, ElementKind::Base)).collect::<Result<Vec<_>>>()?;
        *self = growth.finish()?;
        Ok(found)
    }

    /// Adds a further hierarchy over existing elements: each row gives an element and the values of the levels above
    /// it, from the top down. A row of NULLs leaves its element out of the hierarchy.
    ///
    /// # Errors
    /// As [`Dimension::from_levels`]; [`ModelError::NoSuchId`]; the dimension is then as before.
    pub fn add_hierarchy<'a, R>(&mut self, name: &str, levels: &[&str], rows: R) -> Result<()>
    where
        R: IntoIterator<Item = (ElementId, &'a [Option<&'a str>])>,
    {
        let mut wider = self.clone();
        wider.push_hierarchy(name, levels)?;
        let mut growth = Growth::new(&wider, wider.hierarchies.len() - 1)?;
        for (id, values) in rows {
            growth.dimension.living(id)?;
            if let Some(parent) = growth.descend(values, ElementKind::Consolidated)? {
                growth.link(parent, id);
            }
        }
        *self = growth.finish()?;
        Ok(())
    }

    /// The names that values may give an element of a level hierarchy: its value, the path of values from the top, and
    /// this path below the name of the hierarchy. Of other elements there are none.
    pub(crate) fn names_of_values(&self, id: ElementId) -> Vec<String> {
        let Some(member) = self.element(id).member() else { return Vec::new() };
        let path = self.value_path(id);
        let hierarchy = &self.hierarchies[usize::from(member.hierarchy)].name;
        vec![member.value.clone(), path.clone(), format!("{hierarchy}{PATH_SEPARATOR}{path}")]
    }

    /// True if values gave an element of a level hierarchy its name.
    pub(crate) fn has_name_of_values(&self, id: ElementId) -> bool {
        let element = self.element(id);
        let is_name = |name: &String| *name == element.name;
        !element.renamed && self.names_of_values(id).iter().any(is_name)
    }

    /// The other elements of the value by which `name` finds an element of a level hierarchy as its alternative name.
    pub(crate) fn namesakes(&self, id: ElementId, name: &str) -> Vec<ElementId> {
        let wanted = self.spelling_of(id, name);
        let has_value = |id: &ElementId| self.element(*id).member().is_some_and(|member| member.value == wanted);
        if self.element(id).name == wanted || !has_value(&id) {
            return Vec::new();
        }
        self.order.iter().copied().filter(|other| *other != id && has_value(other)).collect()
    }

    /// Values from the top to an element, in one text.
    fn value_path(&self, id: ElementId) -> String {
        self.values_to(id).join(PATH_SEPARATOR)
    }

    /// Values from the top to an element.
    fn values_to(&self, id: ElementId) -> Vec<String> {
        let mut values = Vec::new();
        let mut next = Some(id);
        while let Some(element) = next.and_then(|id| self.get(id)) {
            values.push(element.value().to_owned());
            next = element.member.as_ref().and_then(|member| member.parent);
        }
        values.reverse();
        values
    }

    fn push_hierarchy(&mut self, name: &str, levels: &[&str]) -> Result<()> {
        std::iter::once(&name).chain(levels).try_for_each(|name| self.named(name))?;
        let max = usize::from(u16::MAX);
        if self.hierarchies.len() >= max || levels.len() >= max {
            return Err(self.too_many("level hierarchies or levels", max));
        }
        let levels = levels.iter().map(|level| (*level).to_owned()).collect();
        self.hierarchies.push(Hierarchy { name: name.to_owned(), levels });
        Ok(())
    }
}

/// A copy of a dimension that grows by rows of level values; names of its new elements are given at the end.
struct Growth {
    dimension: Dimension,
    index: LevelIndex,
    hierarchy: u16,
    level_count: usize,
    added: Vec<ElementId>,
    edges: HashSet<(ElementId, ElementId)>,
}

impl Growth {
    fn new(dimension: &Dimension, hierarchy: usize) -> Result<Self> {
        let Some(levels) = dimension.hierarchies.get(hierarchy) else {
            let (dimension, count) = (dimension.name.clone(), dimension.hierarchies.len());
            return Err(ModelError::NoSuchHierarchy { dimension, hierarchy, count });
        };
        Ok(Self {
            index: LevelIndex::new(dimension, hierarchy),
            hierarchy: hierarchy as u16,
            level_count: levels.levels.len(),
            added: Vec::new(),
            edges: HashSet::new(),
            dimension: dimension.clone(),
        })
    }

    /// Finds or adds the elements of a row; returns the last, which is of kind `last`.
    fn descend(&mut self, values: &[Option<&str>], last: ElementKind) -> Result<Option<ElementId>> {
        if values.len() != self.level_count {
            return Err(ModelError::LevelCount {
                dimension: self.dimension.name.clone(),
                hierarchy: self.hierarchy_name().to_owned(),
                found: values.len(),
                wanted: self.level_count,
            });
        }
        let Some(lowest) = values.iter().rposition(Option::is_some) else { return Ok(None) };
        let mut above = None;
        for (level, value) in values.iter().enumerate().take(lowest + 1) {
            let Some(value) = value else { continue };
            let kind = if level == lowest { last } else { ElementKind::Consolidated };
            let id = match self.index.get(above, level as u16, value) {
                Some(id) if self.dimension.element(id).kind == kind => id,
                Some(_) => {
                    let path = Path(values.iter().flatten().map(|value| (*value).to_owned()).collect());
                    return Err(ModelError::RaggedConflict { dimension: self.dimension.name.clone(), path });
                }
                None => self.add(above, level as u16, value, kind)?,
            };
            above = Some(id);
        }
        Ok(above)
    }

    fn add(&mut self, parent: Option<ElementId>, level: u16, value: &str, kind: ElementKind) -> Result<ElementId> {
        self.dimension.named(value)?;
        let id = self.dimension.append_unnamed(value, kind)?;
        self.dimension.element_mut(id).member =
            Some(Member { hierarchy: self.hierarchy, level, parent, value: value.to_owned() });
        self.index.members.insert(MemberKey { parent, level, value: value.to_owned() }, id);
        self.added.push(id);
        if let Some(parent) = parent {
            self.link(parent, id);
        }
        Ok(id)
    }

    fn link(&mut self, parent: ElementId, child: ElementId) {
        if self.edges.insert((parent, child)) && !self.dimension.element(child).parents.contains(&parent) {
            self.dimension.element_mut(parent).children.push(Edge { child, weight: 1.0 });
            self.dimension.element_mut(child).parents.push(parent);
        }
    }

    fn finish(mut self) -> Result<Dimension> {
        for (id, name) in self.unique_names() {
            self.check_path(&name, id)?;
            self.dimension.claim(&name, id)?;
            let element = self.dimension.element_mut(id);
            if element.name != name {
                let caption = std::mem::replace(&mut element.name, name);
                self.dimension.set_caption(id, Some(&caption))?;
            }
        }
        self.dimension.check_cycles()?;
        self.dimension.topology.take();
        Ok(self.dimension)
    }

    /// Names of the new elements: the value; where that is shared or taken, the path of values from the top; where that
    /// is taken, too, the path below the name of the hierarchy.
    fn unique_names(&self) -> Vec<(ElementId, String)> {
        let element = |id: &ElementId| self.dimension.element(*id);
        let mut named: Vec<(ElementId, String)> =
            self.added.iter().map(|id| (*id, element(id).value().to_owned())).collect();
        let mut lengthened = vec![0_u8; named.len()];
        loop {
            let mut holders: HashMap<String, u32> = HashMap::with_capacity(named.len());
            for (_, name) in &named {
                *holders.entry(name.clone()).or_default() += 1;
            }
            let mut grew = false;
            for ((id, name), times) in named.iter_mut().zip(&mut lengthened) {
                let shared = holders.get(name).is_some_and(|count| *count > 1);
                if *times == 2 || !(shared || self.dimension.holder(name).is_some()) {
                    continue;
                }
                *name = match *times {
                    0 => self.dimension.value_path(*id),
                    _ => format!("{}{PATH_SEPARATOR}{name}", self.hierarchy_name()),
                };
                *times += 1;
                grew = true;
            }
            if !grew {
                return named;
            }
        }
    }

    /// Refuses a name that values of another path give, too.
    fn check_path(&self, name: &str, id: ElementId) -> Result<()> {
        let Some(other) = self.dimension.holder(name) else { return Ok(()) };
        let [one, other] = [other, id].map(|id| self.dimension.values_to(id));
        if one == other {
            return Ok(());
        }
        let (dimension, name) = (self.dimension.name.clone(), name.to_owned());
        Err(ModelError::SharedPath { dimension, name, one: Path(one), other: Path(other) })
    }

    fn hierarchy_name(&self) -> &str {
        &self.dimension.hierarchies[usize::from(self.hierarchy)].name
    }
}

impl Element {
    /// Value of the element's level column, or its name if it is of no level.
    pub(crate) fn value(&self) -> &str {
        self.member.as_ref().map_or(&self.name, |member| &member.value)
    }
}
