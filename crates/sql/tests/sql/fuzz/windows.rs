//! Windows over rows of the fact table, some of them joined, and filters of their numbers. Where rows do not differ in
//! the order, only functions are drawn that give peers one value.

use arrow::datatypes::DataType;

use super::data::Column;
use super::query::{Generator, Query, WAYS};

/// Columns with window functions of a query, at most.
const CALLS_MAX: usize = 3;

impl Generator<'_> {
    /// A query of windows.
    pub fn windows(mut self) -> Query {
        let fact = self.tables.tables[0].name.clone();
        let (joins, joined) = if self.random.chance(75) { Default::default() } else { self.joins() };
        let conditions = self.random.below(2);
        let filters = (0..conditions).map(|_| format!("({})", self.condition(1))).chain(joined).collect();
        // A join may multiply rows.
        let id = joins.is_empty().then(|| self.tables.tables[0].columns[0].name.clone());
        let mut aggregates: Vec<String> = id.clone().into_iter().collect();
        aggregates.push(self.any().1.name.clone());
        let first = aggregates.len();
        let mut window = self.window();
        for _ in 0..1 + self.random.below(CALLS_MAX) {
            if self.random.chance(40) {
                window = self.window();
            }
            aggregates.push(self.over(&window, id.as_deref()));
        }
        let numbers: Vec<usize> = (first..aggregates.len()).filter(|at| is_number(&aggregates[*at])).collect();
        let above = (!numbers.is_empty() && self.random.chance(60)).then(|| {
            let (at, most) = (*self.random.pick(&numbers), 1 + self.random.below(4));
            let filter = match self.random.below(4) {
                0 => format!("a{at} = {most}"),
                1 => format!("{most} >= a{at}"),
                2 => format!("a{at} < {most} AND a0 IS NOT NULL"),
                _ => format!("a{at} <= {most}"),
            };
            format!("SELECT * FROM ({{}}) AS q WHERE {filter}")
        });
        Query { fact, joins, filters, aggregates, above, ..Query::default() }
    }

    /// A partition and an order, either of which may have no key.
    fn window(&mut self) -> (Vec<String>, Vec<String>) {
        let partition = (0..self.random.below(3)).map(|_| self.any().1.name.clone()).collect();
        let mut key = |_| format!("{} {}", self.any().1.name, self.random.pick(&WAYS));
        let order = (0..2).map(&mut key).collect::<Vec<_>>();
        let keys = self.random.below(3);
        (partition, order.into_iter().take(keys).collect())
    }

    /// A function over a window, whose order a column that is unique may complete.
    fn over(&mut self, (partition, order): &(Vec<String>, Vec<String>), id: Option<&str>) -> String {
        let complete = id.filter(|_| self.random.chance(60));
        let (call, frame) = match complete {
            Some(_) => self.of_rows(),
            None => (self.of_peers(), String::new()),
        };
        let mut parts = Vec::new();
        if !partition.is_empty() {
            parts.push(format!("PARTITION BY {}", partition.join(", ")));
        }
        let keys: Vec<String> = order.iter().cloned().chain(complete.map(String::from)).collect();
        if !keys.is_empty() {
            parts.push(format!("ORDER BY {}", keys.join(", ")));
        }
        parts.extend(Some(frame).filter(|frame| !frame.is_empty()));
        format!("{call} OVER ({})", parts.join(" "))
    }

    /// A function that gives rows one value that the order does not tell apart.
    fn of_peers(&mut self) -> String {
        match self.random.below(8) {
            0 | 1 => "rank()".into(),
            2 | 3 => "dense_rank()".into(),
            4 => "percent_rank()".into(),
            5 => "cume_dist()".into(),
            6 => "COUNT(*)".into(),
            _ => self.added_up(),
        }
    }

    /// A function and a frame that tell any two rows apart.
    fn of_rows(&mut self) -> (String, String) {
        let name = self.any().1.name.clone();
        let nulls = self.random.pick(&["", "", " IGNORE NULLS"]).to_string();
        match self.random.below(8) {
            0 | 1 => ("row_number()".into(), String::new()),
            2 => (format!("ntile({})", 1 + self.random.below(9)), String::new()),
            3 => {
                let shift = self.random.pick(&["lag", "lead"]).to_string();
                (format!("{shift}({name}, {}){nulls}", 1 + self.random.below(3)), String::new())
            }
            4 => {
                let picked = self.random.pick(&["first_value", "last_value"]).to_string();
                (format!("{picked}({name}){nulls}"), self.frame())
            }
            _ => (self.added_up(), self.frame()),
        }
    }

    /// An aggregate whose result does not depend on the order in which rows are added.
    fn added_up(&mut self) -> String {
        let is_whole = |column: &Column| column.data_type.is_integer() && !column.wide;
        let is_plain = |column: &Column| !column.data_type.is_floating() && !column.wide;
        let call = match self.random.below(6) {
            0 | 1 => self.column(is_whole).map(|(_, column)| format!("SUM({})", column.name)),
            2 => Some(format!("COUNT({})", self.any().1.name)),
            3 => self
                .column(|column| column.data_type == DataType::Boolean)
                .map(|(_, column)| format!("{}({})", self.random.pick(&["BOOL_AND", "BOOL_OR"]), column.name)),
            _ => self
                .column(is_plain)
                .map(|(_, column)| format!("{}({})", self.random.pick(&["MIN", "MAX"]), column.name)),
        };
        let call = call.unwrap_or_else(|| "COUNT(*)".into());
        match self.random.chance(15) {
            true => format!("{call} FILTER (WHERE {})", self.condition(1)),
            false => call,
        }
    }

    /// A frame of rows or of groups of peers.
    fn frame(&mut self) -> String {
        if self.random.chance(25) {
            return String::new();
        }
        let units = self.random.pick(&["ROWS", "ROWS", "GROUPS"]).to_string();
        let (near, far) = (self.random.below(3), 1 + self.random.below(4));
        let bounds = match self.random.below(7) {
            0 => "UNBOUNDED PRECEDING AND CURRENT ROW".to_string(),
            1 => "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING".into(),
            2 => format!("{far} PRECEDING AND CURRENT ROW"),
            3 => format!("{far} PRECEDING AND {near} FOLLOWING"),
            4 => format!("{near} FOLLOWING AND {} FOLLOWING", near + far),
            5 => format!("{} PRECEDING AND {near} PRECEDING", near + far),
            _ => "CURRENT ROW AND UNBOUNDED FOLLOWING".into(),
        };
        format!("{units} BETWEEN {bounds}")
    }
}

/// Whether a column numbers the rows of partitions.
fn is_number(call: &str) -> bool {
    ["row_number()", "rank()", "dense_rank()"].iter().any(|name| call.starts_with(name))
}
