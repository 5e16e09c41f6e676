//! A dimension of a definition: its elements from lists, tables or the facts, those that `unknown` adds, its further
//! consolidations, and its default element.

use arrow::array::RecordBatch;
use hashbrown::HashSet;

use super::BuildError;
use super::error::sentence_end;
use super::form::Form;
use super::keys::{check_dates, check_names, name_text, plain};
use super::labels::Table;
use super::levels::LevelRows;
use super::problem::Problem;
use super::report::OtherCase;
use super::resolve::Resolver;
use super::source::{Reading, Source};
use super::{consolidate, order, parents};
use crate::define::{DimensionDefinition, NumberStyle, UnknownElements};
use crate::model::{Attribute, Dimension, DimensionBuilder, ElementKind, NUMBER_FORMAT, folded, nearest};

/// A dimension of the definition, before it has elements.
pub(super) struct DimensionPlan<'a> {
    pub(super) name: &'a str,
    pub(super) definition: &'a DimensionDefinition,
    pub(super) form: Form<'a>,
    /// Columns of the facts that name its elements, as the facts write them.
    pub(super) columns: Vec<String>,
    /// What happens to facts that name no base element.
    pub(super) unknown: UnknownElements,
    /// Names, folded, of the consolidated elements that the definition lists.
    pub(super) reserved: Vec<String>,
}

/// Columns that name elements of dimensions that keep rows of values of other types, and of none that refuses them.
pub(super) fn spared(plans: &[DimensionPlan<'_>]) -> Vec<String> {
    let is_kept = |unknown: &UnknownElements| !matches!(unknown, UnknownElements::Refuse | UnknownElements::Add);
    let columns = |is: bool| {
        let plans = plans.iter().filter(move |plan| is_kept(&plan.unknown) == is);
        plans.flat_map(|plan| &plan.columns)
    };
    let is_refused = |column: &&String| columns(false).any(|refused| refused == *column);
    columns(true).filter(|column| !is_refused(column)).cloned().collect()
}

/// The source of rows.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) facts: &'a Source<'a>,
    pub(super) reading: Reading<'a>,
    /// The dimension of the cube that is refreshed.
    pub(super) old: Option<&'a Dimension>,
}

impl Input<'_> {
    /// True if a base element of this name was made by hand in the cube that is refreshed.
    fn has_by_hand(&self, name: &str) -> bool {
        let element = self.old.and_then(|old| Some(old.element(old.find_of_source(name)?)));
        element.is_some_and(|element| element.is_handmade() && element.kind() == ElementKind::Base)
    }
}

impl<'a> DimensionPlan<'a> {
    /// The plan of a dimension; finds its columns among those of the facts.
    pub(super) fn new(
        name: &'a str,
        definition: &'a DimensionDefinition,
        unknown: &UnknownElements,
        facts: &Source<'_>,
    ) -> Result<DimensionPlan<'a>, BuildError> {
        let form = Form::of(name, definition)?;
        let user = user(name);
        let column = |column: &str| {
            let column = facts.column(&user, column)?;
            let found = facts.data_type(column);
            let check = if matches!(form, Form::Time { .. }) { check_dates } else { check_names };
            check(found).map_err(|wanted| BuildError::ColumnType {
                user: user.clone(),
                place: facts.place().to_owned(),
                column: column.to_owned(),
                found: Box::new(found.clone()),
                wanted,
            })?;
            Ok(column.to_owned())
        };
        let columns = form.fact_columns(name, definition).into_iter().map(column);
        let columns = columns.collect::<Result<Vec<_>, BuildError>>()?;
        let unknown = definition.unknown.as_ref().unwrap_or(unknown).clone();
        let reserved = definition.consolidated.names().chain(definition.all.as_deref()).map(folded).collect();
        Ok(DimensionPlan { name, definition, form, columns, unknown, reserved })
    }

    /// The dimension with all of its elements, the names of those that `unknown` added, and the rows of its table that
    /// name parents in another case.
    pub(super) fn dimension(
        &self,
        input: Input<'_>,
    ) -> Result<(Dimension, Vec<String>, Option<OtherCase>), BuildError> {
        let (dimension, other_case) = self.elements(input)?;
        let (dimension, unknown) = self.with_unknown(dimension, input)?;
        // Elements that the definition lists have a place in it.
        let dimension = self.completed(dimension).map_err(|error| match error {
            BuildError::Model(source) => {
                BuildError::Definition { place: format!("dimensions.{}", self.name), message: source.to_string() }
            }
            other => other,
        })?;
        Ok((dimension, unknown, other_case))
    }

    /// The dimension with the consolidations and the default element that the definition lists.
    fn completed(&self, dimension: Dimension) -> Result<Dimension, BuildError> {
        let mut dimension = consolidate::consolidated(dimension, self.definition)?;
        for (name, pattern) in self.definition.format.iter() {
            let id = dimension.find(name)?;
            dimension.set_attribute(id, NUMBER_FORMAT, Attribute::Text(pattern.clone()))?;
        }
        if let Some(default) = self.definition.default.as_deref() {
            let id = dimension.find(default)?;
            dimension.set_default(Some(id))?;
        }
        Ok(dimension)
    }

    /// The dimension with the elements of its form, and the rows of its table that name parents in another case.
    fn elements(&self, input: Input<'_>) -> Result<(Dimension, Option<OtherCase>), BuildError> {
        let levels = |levels: &'a [String]| {
            let levels = levels.iter().map(String::as_str).collect();
            LevelRows { name: self.name, levels }
        };
        let table = |file: &str, key: &str| {
            let source = Source::table(file, self.definition.text(), input.reading)?;
            self.check_alike(input.facts, &source, key)?;
            Ok::<_, BuildError>(Table::new(source, user(self.name)))
        };
        let dimension = match &self.form {
            Form::Parents { table: file, key, parent } => {
                let (columns, table) = ((*key, *parent), table(file, key)?);
                let dimension = parents::of_table(self.name, self.definition, columns, table);
                return dimension.map_err(|error| in_table(file, error));
            }
            Form::TableLevels { table: file, levels: names } => {
                let base = names.last().map_or("", String::as_str);
                let dimension = levels(names).of_table(self.definition, table(file, base)?);
                dimension.map_err(|error| in_table(file, error))
            }
            Form::Time { names, levels: time } => levels(names).of_dates(&self.distinct(input)?, time),
            Form::FactLevels { levels: names } => {
                let (distinct, order) = self.ordered(input)?;
                levels(names).of_facts(&distinct, &order)
            }
            Form::Elements { elements } => self.listed(elements),
            Form::Values => {
                let (distinct, order) = self.ordered(input)?;
                let DimensionDefinition { consolidated, all, .. } = self.definition;
                let mut known: HashSet<String> =
                    consolidated.names().chain(all.as_deref()).map(str::to_owned).collect();
                let names = order.into_iter().filter_map(|row| name_text(distinct.column(0), row));
                self.listed(&names.filter(|name| known.insert(name.clone())).collect::<Vec<_>>())
            }
        };
        Ok((dimension?, None))
    }

    /// Refuses a table whose keys are text where those of the facts are numbers, or the other way round.
    fn check_alike(&self, facts: &Source<'_>, table: &Source<'_>, key: &str) -> Result<(), BuildError> {
        if facts.is_guessed() {
            return Ok(());
        }
        let (Some(own), key) = (self.columns.first(), table.column(&user(self.name), key)?) else { return Ok(()) };
        let (of_facts, of_table) = (plain(facts.data_type(own)), plain(table.data_type(key)));
        let ((text, text_column), (numbers, number_column)) = match (of_facts, of_table) {
            (text, other) if text.is_string() && other.is_numeric() => ((facts, own.as_str()), (table, key)),
            (other, text) if text.is_string() && other.is_numeric() => ((table, key), (facts, own.as_str())),
            _ => return Ok(()),
        };
        Err(BuildError::UnlikeKeys {
            dimension: self.name.into(),
            text_place: text.place().into(),
            text_column: text_column.into(),
            number_place: numbers.place().into(),
            number_column: number_column.into(),
            found: Box::new(numbers.data_type(number_column).clone()),
        })
    }

    /// Base elements of a list.
    fn listed(&self, names: &[String]) -> Result<Dimension, BuildError> {
        let mut builder = DimensionBuilder::new(self.name)?;
        for name in names {
            builder.add(name, ElementKind::Base)?;
        }
        Ok(builder.finish()?)
    }

    /// Distinct keys of the facts, with the column that `sort` names behind them, and the order of their rows.
    fn ordered(&self, input: Input<'_>) -> Result<(RecordBatch, Vec<usize>), BuildError> {
        let mut columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let Some(sort) = self.definition.sort.as_deref() else {
            let distinct = self.distinct(input)?;
            let order = order::ordered(&distinct, &columns, input.facts)?;
            return Ok((distinct, order.values().iter().map(|row| *row as usize).collect()));
        };
        let sort = input.facts.column(&user(self.name), sort)?;
        let style = if input.facts.is_untyped(sort) { input.facts.style() } else { NumberStyle::PLAIN };
        columns.push(sort);
        let distinct = input.facts.distinct(&columns)?;
        // Elements of one value in the column stand in ascending order.
        let keys = order::ordered(&distinct, &[], input.facts)?;
        let failed = |source| BuildError::Arrow { what: "sorting values", source };
        let distinct = arrow::compute::take_record_batch(&distinct, &keys).map_err(failed)?;
        let order = order::sorted_rows(&distinct, Some((self.columns.len(), style)))?;
        Ok((distinct, order))
    }

    /// Distinct keys of the facts.
    fn distinct(&self, input: Input<'_>) -> Result<RecordBatch, BuildError> {
        input.facts.distinct(&self.columns.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The dimension with the elements that `unknown` adds, by ascending value, and their names.
    fn with_unknown(&self, dimension: Dimension, input: Input<'_>) -> Result<(Dimension, Vec<String>), BuildError> {
        let kind = |name: &str| dimension.find_key(name).map(|id| dimension.element(id).kind());
        let is_reserved = |name: &str| self.reserved.contains(&folded(name));
        let named = match &self.unknown {
            UnknownElements::Refuse | UnknownElements::Aside => return Ok((dimension, Vec::new())),
            UnknownElements::Add => None,
            UnknownElements::Named(name) => match kind(name) {
                Some(ElementKind::Base) => return Ok((dimension, Vec::new())),
                // A refresh adds the elements that were made by hand later.
                None if input.has_by_hand(name) => return Ok((dimension, Vec::new())),
                None if !is_reserved(name) => return Err(self.no_element(name, &dimension)),
                _ => return Err(self.not_base(name)),
            },
            UnknownElements::AddNamed(name) => match kind(name) {
                Some(ElementKind::Base) => return Ok((dimension, Vec::new())),
                None if input.has_by_hand(name) => return Ok((dimension, Vec::new())),
                None if !is_reserved(name) => Some(name),
                _ => return Err(self.not_base(name)),
            },
        };
        let problems = self.problems(&dimension, input)?;
        let names: Vec<String> = match named {
            Some(name) if !problems.is_empty() => vec![name.clone()],
            Some(_) => Vec::new(),
            None => problems.into_iter().filter_map(unknown_name).collect(),
        };
        let mut builder = DimensionBuilder::resume(dimension);
        for name in &names {
            builder.add(name, ElementKind::Base)?;
        }
        Ok((builder.finish()?, names))
    }

    /// The keys of rows.
    fn resolved<'d>(&'d self, dimension: &'d Dimension, rows: &RecordBatch) -> Result<Resolver<'d>, BuildError> {
        let mut resolver = Resolver::new(dimension, &self.form, &self.reserved);
        let columns: Vec<usize> = (0..self.columns.len()).collect();
        resolver.resolve(rows, &columns).map_err(|source| BuildError::Arrow { what: "reading keys", source })?;
        Ok(resolver)
    }

    /// Keys of the facts that name no base element, ascending.
    fn problems(&self, dimension: &Dimension, input: Input<'_>) -> Result<Vec<Problem>, BuildError> {
        let distinct = self.distinct(input)?;
        let order = order::ordered(&distinct, &[], input.facts)?;
        let failed = |source| BuildError::Arrow { what: "sorting values", source };
        let sorted = arrow::compute::take_record_batch(&distinct, &order).map_err(failed)?;
        let (resolver, mut seen) = (self.resolved(dimension, &sorted)?, HashSet::new());
        let met = resolver.codes.iter().filter(|code| resolver.base_of(**code).is_none() && seen.insert(**code));
        Ok(met.map(|code| resolver.problems.of(*code).clone()).collect())
    }

    fn no_element(&self, name: &str, dimension: &Dimension) -> BuildError {
        let bases = dimension.elements().iter().map(|id| dimension.element(*id));
        let bases = bases.filter(|element| element.kind() == ElementKind::Base).map(|element| element.name());
        let near = sentence_end(&nearest(name, bases.chain(["refuse", "aside", "add"])));
        let message =
            format!("{} has no element '{name}'{near} To add it where facts need it, write add {name}", self.name);
        BuildError::Definition { place: format!("dimensions.{}.unknown", self.name), message }
    }

    fn not_base(&self, name: &str) -> BuildError {
        let message = format!("'{name}' is no base element; unknown: names a base element of {}", self.name);
        BuildError::Definition { place: format!("dimensions.{}.unknown", self.name), message }
    }
}

/// The name of a dimension's user in errors of columns.
fn user(name: &str) -> String {
    format!("dimension '{name}'")
}

fn in_table(table: &str, error: BuildError) -> BuildError {
    match error {
        BuildError::Model(source) => BuildError::Table { table: table.to_owned(), source: Box::new(source) },
        other => other,
    }
}

/// The name that a key would give an element; nothing for keys that are elements of another kind.
fn unknown_name(problem: Problem) -> Option<String> {
    match problem {
        Problem::Unknown(name) | Problem::Case(name, _) => Some(name),
        _ => None,
    }
}
