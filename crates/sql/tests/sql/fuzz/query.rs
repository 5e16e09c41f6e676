//! Random aggregations over the tables of a case, by grouping sets too, and first rows of its fact table, kept in parts
//! so that a failing one can be shrunk.

use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::data::{Column, Table, Tables, Tie};
use super::first_rows::FirstRows;
use super::random::Random;
use super::sets::Sets;

/// Directions of a key with the place of NULL.
pub(super) const WAYS: [&str; 4] = ["", "DESC", "ASC NULLS FIRST", "DESC NULLS LAST"];

/// A query.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Name of the fact table.
    pub fact: String,
    /// Branches of UNION ALL beside the fact table, with its columns.
    pub union: Vec<String>,
    /// Joins in order; the table each brings and its text.
    pub joins: Vec<(String, String)>,
    /// Conjuncts.
    pub filters: Vec<String>,
    /// Group expressions.
    pub groups: Vec<String>,
    /// The sets that rows are grouped by.
    pub sets: Sets,
    /// Aggregates.
    pub aggregates: Vec<String>,
    /// HAVING.
    pub having: Option<String>,
    /// An order of the groups, by their number of rows first or by their keys alone, and its LIMIT.
    pub order: Option<(bool, Option<usize>)>,
    /// The first rows of the fact table by an order, in place of groups and aggregates.
    pub first: Option<FirstRows>,
    /// A statement over the query, which stands in place of its braces.
    pub above: Option<String>,
}

impl Query {
    /// The statement.
    pub fn sql(&self) -> String {
        let mut outputs: Vec<String> = Vec::new();
        outputs.extend(self.groups.iter().enumerate().map(|(index, group)| format!("{group} AS g{index}")));
        outputs.extend(self.aggregates.iter().enumerate().map(|(index, call)| format!("{call} AS a{index}")));
        outputs.extend(self.first.iter().flat_map(FirstRows::outputs));
        let name = &self.fact;
        let from = match self.union.is_empty() {
            true => name.clone(),
            false => format!("(SELECT * FROM {name} UNION ALL {}) AS {name}", self.union.join(" UNION ALL ")),
        };
        let mut sql = format!("SELECT {} FROM {from}", outputs.join(", "));
        for (_, join) in &self.joins {
            sql += &format!(" {join}");
        }
        if !self.filters.is_empty() {
            sql += &format!(" WHERE {}", self.filters.join(" AND "));
        }
        if !self.groups.is_empty() {
            sql += &format!(" GROUP BY {}", self.sets.over(&self.groups));
        }
        if let Some(having) = &self.having {
            sql += &format!(" HAVING {having}");
        }
        if let Some((counted, limit)) = self.order.filter(|_| !self.groups.is_empty()) {
            let mut keys = if counted { vec!["COUNT(*) DESC".to_string()] } else { Vec::new() };
            keys.extend((1..=self.groups.len()).map(|position| position.to_string()));
            sql += &format!(" ORDER BY {}", keys.join(", "));
            sql += &limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        }
        sql += &self.first.as_ref().map(FirstRows::order).unwrap_or_default();
        self.above.as_ref().map_or(sql.clone(), |above| above.replace("{}", &sql))
    }

    /// Queries with one part less.
    pub fn smaller(&self) -> Vec<Query> {
        let mut smaller = Vec::new();
        for (index, (table, _)) in self.joins.iter().enumerate() {
            let marker = format!("{table}_");
            let without = |parts: &[String]| parts.iter().filter(|part| !part.contains(&marker)).cloned().collect();
            let mut query = self.clone();
            query.joins.remove(index);
            query.joins.retain(|(_, join)| !join.contains(&marker));
            query.filters = without(&self.filters);
            query.groups = without(&self.groups);
            query.aggregates = without(&self.aggregates);
            if query.aggregates.is_empty() && query.first.is_none() {
                query.aggregates.push("COUNT(*)".into());
            }
            smaller.push(query);
        }
        let mut removed = |change: &dyn Fn(&mut Query)| {
            let mut query = self.clone();
            change(&mut query);
            smaller.push(query);
        };
        if self.above.is_some() {
            removed(&|query| query.above = None);
        }
        if self.sets != Sets::One {
            removed(&|query| query.sets = Sets::One);
        }
        if self.having.is_some() {
            removed(&|query| query.having = None);
        }
        if let Some((counted, limit)) = self.order {
            removed(&|query| query.order = None);
            if counted {
                removed(&|query| query.order = Some((false, limit)));
            }
            if limit.is_some() {
                removed(&|query| query.order = Some((counted, None)));
            }
        }
        for index in 0..self.union.len() {
            removed(&|query| drop(query.union.remove(index)));
        }
        for index in 0..self.filters.len() {
            removed(&|query| drop(query.filters.remove(index)));
        }
        for index in 0..self.groups.len() {
            removed(&|query| drop(query.groups.remove(index)));
        }
        if let Some(first) = &self.first {
            if first.offset > 0 {
                removed(&|query| query.first.iter_mut().for_each(|first| first.offset = 0));
            }
            // A unique key stays.
            let removable = first.keys.len() - usize::from(!first.columns.is_empty());
            for index in (0..removable).filter(|_| first.keys.len() > 1) {
                removed(&|query| query.first.iter_mut().for_each(|first| drop(first.keys.remove(index))));
            }
        }
        if self.aggregates.len() > 1 {
            for index in 0..self.aggregates.len() {
                removed(&|query| drop(query.aggregates.remove(index)));
            }
        }
        smaller
    }
}

/// Draws queries over tables.
pub struct Generator<'a> {
    pub(super) random: &'a mut Random,
    pub(super) tables: &'a Tables,
    /// Tables whose columns may be read.
    scope: Vec<usize>,
}

impl<'a> Generator<'a> {
    /// A generator over tables.
    pub fn new(random: &'a mut Random, tables: &'a Tables) -> Generator<'a> {
        Generator { random, tables, scope: vec![0] }
    }

    /// A query.
    pub fn query(mut self) -> Query {
        let fact = self.tables.tables[0].name.clone();
        let (joins, mut filters) = self.joins();
        for _ in 0..self.random.below(4) {
            filters.push(format!("({})", self.condition(2)));
        }
        let most = if self.random.chance(10) { 9 } else { 4 };
        let mut groups: Vec<String> = (0..self.random.below(most)).map(|_| self.group()).collect();
        let sets = if groups.is_empty() || self.random.chance(80) { Sets::One } else { self.sets(&mut groups) };
        let aggregates: Vec<String> = (0..1 + self.random.below(4)).map(|_| self.aggregate()).collect();
        let having = self.random.chance(15).then(|| match self.random.below(2) {
            0 => format!("COUNT(*) > {}", self.random.below(5)),
            _ => format!("{} IS NOT NULL", aggregates[0]),
        });
        // Groups of several sets may have equal keys.
        let order = (sets == Sets::One && self.random.chance(30)).then(|| {
            let limit = self.random.chance(70).then(|| 1 + self.random.below(20));
            (self.random.chance(50), limit)
        });
        let union = if self.random.chance(20) { self.branches() } else { Vec::new() };
        Query { fact, union, joins, filters, groups, sets, aggregates, having, order, first: None, above: None }
    }

    /// First rows of the fact table: by its columns, under plain comparisons, or by computed keys under any conditions,
    /// some of them joined with other tables.
    pub fn first_rows(mut self, are_plain: bool) -> Query {
        let fact = self.tables.tables[0].name.clone();
        let (joins, joined) = if are_plain || self.random.chance(50) { Default::default() } else { self.joins() };
        let filters = self.random.below(3);
        let mut filter = |_| match are_plain {
            true => format!("({})", self.comparison()),
            false => format!("({})", self.condition(2)),
        };
        let filters: Vec<String> = (0..filters).map(&mut filter).chain(joined).collect();
        let mut keys: Vec<(String, String)> = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let key = if are_plain || self.random.chance(60) { self.any().1.name.clone() } else { self.group() };
            keys.push((key, self.random.pick(&WAYS).to_string()));
        }
        let limit = Some(*self.random.pick(&[1, 3, 20, 64, 300, 2_000])).filter(|_| self.random.chance(75));
        let offset = if limit.is_some() && self.random.chance(30) { self.random.below(40) } else { 0 };
        // A join may multiply rows, so that no key is unique.
        let columns = match joins.is_empty() && self.random.chance(50) {
            true => {
                let id = self.tables.tables[0].columns[0].name.clone();
                keys.push((id.clone(), self.random.pick(&WAYS).to_string()));
                let mut columns = vec![id, self.any().1.name.clone(), self.any().1.name.clone()];
                columns.dedup();
                columns.truncate(2);
                columns
            }
            false => Vec::new(),
        };
        let union =
            if columns.is_empty() && !are_plain && self.random.chance(20) { self.branches() } else { Vec::new() };
        let first = Some(FirstRows { columns, keys, limit, offset });
        Query { fact, union, joins, filters, first, ..Query::default() }
    }

    /// A comparison of a column with constants, or a test for NULL.
    fn comparison(&mut self) -> String {
        let (table, column) = self.any();
        let name = &column.name;
        if column.data_type == DataType::Boolean || self.random.chance(15) {
            return format!("{name} IS {}NULL", self.random.pick(&["", "NOT "]));
        }
        let (one, other) = (self.literal(table, column), self.literal(table, column));
        match self.random.below(4) {
            0 => format!("{name} BETWEEN {one} AND {other}"),
            1 => format!("{name} IN ({one}, {other})"),
            _ => format!("{name} {} {one}", self.random.pick(&["<>", "<", "<=", ">", ">="])),
        }
    }

    /// Branches with the fact table's columns by name and type: of any table, some with columns that take the place of
    /// others, or NULL.
    fn branches(&mut self) -> Vec<String> {
        (0..1 + self.random.below(2)).map(|_| self.branch()).collect()
    }

    fn branch(&mut self) -> String {
        let tables = self.tables;
        let number = self.random.below(tables.tables.len());
        let (fact, table) = (&tables.tables[0], &tables.tables[number]);
        let mut column = |wanted: &Column| {
            let is_like = |one: &&Column| one.data_type == wanted.data_type && (wanted.wide || !one.wide);
            let alike: Vec<&Column> = table.columns.iter().filter(is_like).collect();
            let own = alike.iter().find(|one| one.name == wanted.name && self.random.chance(70));
            match own.copied().or_else(|| (!alike.is_empty()).then(|| *self.random.pick(&alike))) {
                Some(one) => format!("{} AS {}", one.name, wanted.name),
                None => format!("arrow_cast(NULL, '{:?}') AS {}", wanted.data_type, wanted.name),
            }
        };
        let columns: Vec<String> = fact.columns.iter().map(&mut column).collect();
        let mut branch = format!("SELECT {} FROM {}", columns.join(", "), table.name);
        if self.random.chance(50) {
            branch += &format!(" WHERE {}", self.condition_over(&[number], 1));
        }
        branch
    }

    pub(super) fn joins(&mut self) -> (Vec<(String, String)>, Vec<String>) {
        let (mut joins, mut filters) = (Vec::new(), Vec::new());
        let tables = self.tables;
        for tie in &tables.ties {
            if !self.scope.contains(&tie.parent) || self.random.chance(25) {
                continue;
            }
            let child = &tables.tables[tie.child];
            let equality = if self.random.chance(8) { "IS NOT DISTINCT FROM" } else { "=" };
            let on = format!("({} {equality} {})", tie.foreign, tie.key);
            match self.random.below(14) {
                12 => joins.push((child.name.clone(), format!("RIGHT JOIN {} ON {on}", child.name))),
                13 => joins.push((child.name.clone(), format!("FULL JOIN {} ON {on}", child.name))),
                0..=5 => joins.push((child.name.clone(), format!("JOIN {} ON {on}", child.name))),
                6 => joins.push((child.name.clone(), format!("LEFT JOIN {} ON {on}", child.name))),
                10 => {
                    let mut scope = self.scope.clone();
                    if self.random.chance(60) {
                        scope = vec![tie.child];
                    } else if self.random.chance(50) {
                        scope.push(tie.child);
                    }
                    let further = self.condition_over(&scope, 1);
                    joins.push((child.name.clone(), format!("LEFT JOIN {} ON {on} AND ({further})", child.name)));
                }
                11 => {
                    let inner = self.condition_over(&[tie.child], 1);
                    let set = format!("SELECT {} FROM {} WHERE {inner}", tie.key, child.name);
                    filters.push(format!("{} NOT IN ({set})", tie.foreign));
                    continue;
                }
                7 | 8 => {
                    filters.push(self.marked(tie, child, &on));
                    continue;
                }
                _ => {
                    let scope = self.scope_of_inner(tie.child);
                    let inner = self.condition_over(&scope, 1);
                    filters.push(format!("NOT EXISTS (SELECT 1 FROM {} WHERE {on} AND ({inner}))", child.name));
                    continue;
                }
            }
            self.scope.push(tie.child);
        }
        (joins, filters)
    }

    fn membership(&mut self, tie: &Tie, child: &Table, on: &str) -> String {
        let scope = self.scope_of_inner(tie.child);
        let inner = self.condition_over(&scope, 1);
        let (foreign, key, name) = (&tie.foreign, &tie.key, &child.name);
        match self.random.below(8) {
            0 => {
                // DataFusion reads no outer column in a branch.
                let [one, other] = [(); 2].map(|_| self.condition_over(&[tie.child], 1));
                let union = format!("SELECT {key} FROM {name} WHERE {one} UNION ALL SELECT {key} FROM {name}");
                format!("{foreign} IN ({union} WHERE {other})")
            }
            1 => {
                let operator = self.random.pick(&["<", "<=", ">", ">=", "<>"]);
                format!("EXISTS (SELECT 1 FROM {name} WHERE {foreign} {operator} {key} AND ({inner}))")
            }
            2..=4 => format!("{foreign} IN (SELECT {key} FROM {name} WHERE {inner})"),
            _ => format!("EXISTS (SELECT 1 FROM {name} WHERE {on} AND ({inner}))"),
        }
    }

    /// A membership alone, or as a part of a condition.
    fn marked(&mut self, tie: &Tie, child: &Table, on: &str) -> String {
        let membership = self.membership(tie, child, on);
        match self.random.below(8) {
            0 | 1 => format!("({membership} OR {})", self.condition(1)),
            2 => format!("(NOT {membership} OR {})", self.condition(1)),
            3 => format!("({membership}) IS NOT TRUE"),
            _ => membership,
        }
    }

    /// What a condition inside of a subquery over `child` reads: that alone, or what is joined outside as well.
    fn scope_of_inner(&mut self, child: usize) -> Vec<usize> {
        let mut scope = vec![child];
        if self.random.chance(30) {
            scope.extend(&self.scope);
        }
        scope
    }

    pub(super) fn condition_over(&mut self, scope: &[usize], depth: usize) -> String {
        let kept = std::mem::replace(&mut self.scope, scope.to_vec());
        let condition = self.condition(depth);
        self.scope = kept;
        condition
    }

    pub(super) fn any(&mut self) -> (&'a Table, &'a Column) {
        let table = &self.tables.tables[*self.random.pick(&self.scope)];
        (table, self.random.pick(&table.columns))
    }

    /// A column for which `wanted` holds; after some tries whatever there is.
    pub(super) fn column(&mut self, wanted: impl Fn(&Column) -> bool) -> Option<(&'a Table, &'a Column)> {
        (0..12).map(|_| self.any()).find(|(_, column)| wanted(column))
    }

    /// A value of the column, or one near, as a literal.
    pub(super) fn literal(&mut self, table: &Table, column: &Column) -> String {
        let values = table.rows.column_by_name(&column.name).expect("columns are in their table");
        let row = if values.is_empty() { 0 } else { self.random.below(values.len()) };
        let missing = values.is_empty() || values.is_null(row);
        let text = match missing {
            true => match &column.data_type {
                data_type if data_type.is_numeric() => "3".to_string(),
                DataType::Boolean => "true".into(),
                DataType::Date32 | DataType::Timestamp(_, _) => "1999-05-17".into(),
                _ => "a".into(),
            },
            false => {
                let formatter = ArrayFormatter::try_new(values.as_ref(), &FormatOptions::new()).expect("displayable");
                formatter.value(row).to_string()
            }
        };
        match &column.data_type {
            data_type if data_type.is_integer() => text,
            DataType::Boolean => text,
            data_type if is_text(data_type) => format!("'{}'", text.replace('\'', "''")),
            data_type => format!("arrow_cast('{text}', '{data_type:?}')"),
        }
    }

    pub(super) fn condition(&mut self, depth: usize) -> String {
        if depth > 0 && self.random.chance(35) {
            let (left, right) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.random.below(5) {
                0 => format!("NOT ({left})"),
                1 | 2 => format!("({left}) OR ({right})"),
                _ => format!("({left}) AND ({right})"),
            };
        }
        let (table, column) = self.any();
        let name = &column.name;
        if self.random.chance(12) {
            return format!("{name} IS {}NULL", self.random.pick(&["", "NOT "]));
        }
        if column.data_type == DataType::Boolean {
            return format!(
                "{}{name}{}",
                self.random.pick(&["", "NOT "]),
                self.random.pick(&["", " IS TRUE", " IS FALSE"])
            );
        }
        if is_text(&column.data_type) {
            return self.text_condition(table, column);
        }
        let operator = *self.random.pick(&["=", "<>", "<", "<=", ">", ">="]);
        let (one, other) = (self.literal(table, column), self.literal(table, column));
        match self.random.below(11) {
            9 => {
                let extreme = self.random.pick(&["MIN", "MAX"]);
                format!(
                    "{name} {operator} (SELECT {extreme}({name}) FROM {} WHERE {name} {operator} {one})",
                    table.name
                )
            }
            10 if column.data_type == DataType::Date32 => {
                format!("{} {operator} {one}", self.moved(name))
            }
            0 => format!("{name} BETWEEN {one} AND {other}"),
            1 => format!("{name} IN ({one}, {other}, {})", self.literal(table, column)),
            2 => format!("{name} NOT IN ({one}, {other})"),
            3 if column.data_type.is_integer() => format!("{name} <> 0 AND 100 / {name} {operator} 3"),
            4 => match self.column(|other| other.data_type == column.data_type) {
                Some((_, second)) => format!("{name} {operator} {}", second.name),
                None => format!("{name} {operator} {one}"),
            },
            5 if column.data_type == DataType::Date32 => {
                let part = *self.random.pick(&["year", "month", "day", "quarter", "dow"]);
                format!("date_part('{part}', {name}) {operator} {}", self.random.below(12))
            }
            _ => format!("{name} {operator} {one}"),
        }
    }

    fn text_condition(&mut self, table: &Table, column: &Column) -> String {
        let name = &column.name;
        let (one, other) = (self.literal(table, column), self.literal(table, column));
        let start: String = one.trim_matches('\'').chars().take(1).collect();
        let start = start.replace('\'', "''");
        match self.random.below(12) {
            9 | 10 => match self.column(|other| is_text(&other.data_type)) {
                Some((_, second)) => {
                    format!("{name} {} {}", self.random.pick(&["=", "<>", "<", ">=", ">", "<="]), second.name)
                }
                None => format!("{name} = {one}"),
            },
            11 => {
                let extreme = self.random.pick(&["MIN", "MAX"]);
                format!("{name} <> (SELECT {extreme}({name}) FROM {})", table.name)
            }
            0 => format!("{name} IN ({one}, {other})"),
            1 => format!("{name} LIKE '{start}%'"),
            2 => format!("{name} NOT LIKE '%{start}_%'"),
            3 => format!("upper({name}) = upper({one})"),
            4 => format!("length({name}) > {}", self.random.below(6)),
            5 => format!("substr({name}, 1, 1) = '{start}'"),
            6 => format!("{name} {} {one}", self.random.pick(&["<", ">", "<=", ">="])),
            _ => format!("{name} {} {one}", self.random.pick(&["=", "<>"])),
        }
    }

    /// A date some time later or earlier.
    fn moved(&mut self, name: &str) -> String {
        let unit = *self.random.pick(&["days", "months", "years", "weeks"]);
        format!("{name} {} INTERVAL '{} {unit}'", self.random.pick(&["+", "-"]), self.random.below(40))
    }

    /// A string that is one of several.
    fn chosen(&mut self, name: &str) -> String {
        let other = match self.column(|other| is_text(&other.data_type) && other.name != name) {
            Some((_, second)) if self.random.chance(70) => second.name.clone(),
            _ => "'none of them'".into(),
        };
        match self.random.below(3) {
            0 => format!("COALESCE({name}, {other})"),
            1 => format!("NULLIF({name}, {other})"),
            _ => format!("CASE WHEN {} THEN {name} ELSE {other} END", self.condition(1)),
        }
    }

    fn group(&mut self) -> String {
        let (_, column) = self.any();
        let name = column.name.clone();
        match &column.data_type {
            data_type if data_type.is_floating() && self.random.chance(30) => format!("{name} IS NULL"),
            DataType::Date32 if self.random.chance(40) => format!("date_part('year', {name})"),
            DataType::Date32 if self.random.chance(30) => self.moved(&name),
            data_type if is_text(data_type) && self.random.chance(20) => self.chosen(&name),
            DataType::Timestamp(_, _) => match self.random.below(4) {
                0 => format!("CAST({name} AS DATE)"),
                1 => {
                    let part = *self.random.pick(&["year", "month", "dow", "hour", "minute", "second"]);
                    format!("date_part('{part}', {name})")
                }
                2 => {
                    let units = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"];
                    format!("date_trunc('{}', {name})", self.random.pick(&units))
                }
                _ => name,
            },
            data_type if is_text(data_type) && self.random.chance(20) => format!("length({name})"),
            data_type if data_type.is_integer() && self.random.chance(10) => format!("{name} % 7"),
            _ => name,
        }
    }

    fn aggregate(&mut self) -> String {
        let numeric = |column: &Column| column.data_type.is_numeric();
        let call = match self.random.below(23) {
            0..=3 => "COUNT(*)".to_string(),
            4 | 5 => format!("COUNT({})", self.any().1.name),
            6..=10 => format!("SUM({})", self.number(numeric)),
            11..=13 => format!("AVG({})", self.number(|column| numeric(column) && !column.wide)),
            14 if self.random.chance(30) => match self.column(|column| numeric(column) && !column.wide) {
                Some((_, column)) => format!("{}(DISTINCT {})", self.random.pick(&["SUM", "AVG"]), column.name),
                None => "COUNT(1)".into(),
            },
            14 => format!("COUNT(DISTINCT {})", self.any().1.name),
            15 if self.random.chance(40) => self.pair_statistic(),
            15 => {
                let function = *self.random.pick(&["VAR", "VAR_POP", "STDDEV", "STDDEV_POP"]);
                match self.column(|column| numeric(column) && !column.wide) {
                    Some((_, column)) => format!("{function}({})", column.name),
                    None => "COUNT(1)".into(),
                }
            }
            16 => match self.column(|column| column.data_type == DataType::Boolean) {
                Some((_, column)) => format!("{}({})", self.random.pick(&["BOOL_AND", "BOOL_OR"]), column.name),
                None => "COUNT(1)".into(),
            },
            17 => match self.column(|column| is_text(&column.data_type)) {
                Some((_, column)) => {
                    let name = column.name.clone();
                    format!("{}({})", self.random.pick(&["MIN", "MAX"]), self.chosen(&name))
                }
                None => "COUNT(1)".into(),
            },
            18 | 19 => self.order_statistic(),
            _ => {
                // DataFusion's grouped extremes of NaN and infinities depend on the order of the rows.
                match self.column(|column| !column.wide || !column.data_type.is_floating()) {
                    Some((_, column)) => format!("{}({})", self.random.pick(&["MIN", "MAX"]), column.name),
                    None => "COUNT(1)".into(),
                }
            }
        };
        match self.random.chance(20) {
            true => format!("{call} FILTER (WHERE {})", self.condition(1)),
            false => call,
        }
    }

    /// An expression over numbers.
    fn number(&mut self, wanted: impl Fn(&Column) -> bool + Copy) -> String {
        let Some((table, column)) = self.column(wanted) else { return "1".into() };
        let name = column.name.clone();
        let literal = self.literal(table, column);
        let small = !column.wide;
        match self.random.below(12) {
            0 if small => format!("{name} + {literal}"),
            1 if small => {
                match self.column(|other| wanted(other) && other.data_type == column.data_type && !other.wide) {
                    Some((_, second)) => format!("{name} {} {}", self.random.pick(&["+", "-", "*"]), second.name),
                    None => format!("{name} * 2"),
                }
            }
            2 => format!("CASE WHEN {} THEN {name} ELSE {literal} END", self.condition(1)),
            3 => format!("CASE WHEN {} THEN {name} END", self.condition(1)),
            4 => format!("COALESCE({name}, {literal})"),
            5 => format!("NULLIF({name}, {literal})"),
            6 if small => format!("CAST({name} AS DOUBLE)"),
            8 if small && !column.data_type.is_unsigned_integer() => format!("-{name}"),
            7 if small && column.data_type.is_integer() => format!("CAST({name} AS BIGINT) * 3"),
            9 if small && matches!(column.data_type, DataType::Decimal128(_, _)) => {
                format!(
                    "{name} {} {}",
                    self.random.pick(&["/", "%"]),
                    self.random.pick(&["3", "0.7", "arrow_cast('12.5', 'Decimal128(6, 3)')"])
                )
            }
            _ => name,
        }
    }
}

/// Whether values are strings.
pub fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(_, _))
}
