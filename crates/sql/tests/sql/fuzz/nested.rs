//! Queries over the groups of another: aggregated again, joined with the fact table, or with a filtered dimension, or
//! read twice as a table of WITH.

use super::data::{Column, Tie};
use super::query::{Generator, Query};

impl Generator<'_> {
    /// A query over the groups of another.
    pub fn nested(mut self) -> Query {
        let ties: Vec<&Tie> = self.tables.ties.iter().filter(|tie| tie.parent == 0).collect();
        if !ties.is_empty() && self.random.chance(40) {
            let tie = *self.random.pick(&ties);
            let above = self.over_dimension(tie);
            return self.groups_below(Some(tie.foreign.clone()), above);
        }
        let fact = &self.tables.tables[0];
        let keys: Vec<&Column> = fact.columns.iter().filter(|column| !column.data_type.is_floating()).collect();
        let key = (!keys.is_empty()).then(|| self.random.pick(&keys).name.clone());
        let (kind, is_joined) = (self.random.below(8), self.random.chance(40));
        let join = self.random.pick(&["JOIN", "LEFT JOIN"]).to_string();
        let name = fact.name.clone();
        match key.filter(|_| is_joined) {
            Some(key) => {
                let outputs = match kind {
                    0 => "COUNT(*) AS n, SUM(q.a0) AS s, MAX(q.a1) AS m".to_string(),
                    _ => format!("{name}.{key} AS k, q.a0"),
                };
                let above = format!("SELECT {outputs} FROM {name} {join} ({{}}) AS q ON {name}.{key} = q.g0");
                self.groups_below(Some(key), above)
            }
            None => {
                let above = match kind {
                    0 => "SELECT g0, COUNT(*) AS n, SUM(a0) AS s, MAX(a1) AS m FROM ({}) AS q GROUP BY g0",
                    3 => "SELECT COUNT(*) AS n FROM (SELECT * FROM ({}) AS q LIMIT 5) AS r",
                    1 => "SELECT a0, COUNT(*) AS n, MIN(g0) AS m FROM ({}) AS q GROUP BY a0",
                    4 => {
                        "WITH q AS ({}) SELECT p.g0, COUNT(*) AS n, SUM(p.a0 + r.a0) AS s, MAX(r.a1) AS m \
                         FROM q AS p JOIN q AS r ON p.g0 = r.g0 GROUP BY p.g0"
                    }
                    5 => {
                        "WITH q AS ({}) SELECT p.g0, p.a0, r.a1 FROM q AS p LEFT JOIN q AS r ON p.g0 = r.g0 \
                         WHERE p.a0 > 1 AND r.a0 IS NOT NULL"
                    }
                    6 => {
                        "WITH q AS ({}) SELECT a0, COUNT(*) AS n, MIN(g0) AS m \
                         FROM (SELECT * FROM q WHERE a0 > 1 UNION ALL SELECT * FROM q) AS u GROUP BY a0"
                    }
                    7 => "WITH q AS ({}) SELECT COUNT(*) AS n FROM q WHERE a0 = (SELECT MAX(a0) FROM q)",
                    _ => "SELECT COUNT(*) AS n, COUNT(a1) AS c, SUM(a0) AS s FROM ({}) AS q",
                };
                self.groups_below(None, above.to_string())
            }
        }
    }

    /// A query of groups, by a key if there is one, below a statement.
    fn groups_below(self, key: Option<String>, above: String) -> Query {
        let mut query = self.query();
        query.order = None;
        query.aggregates.insert(0, "COUNT(*)".into());
        match key {
            Some(key) => {
                query.groups.insert(0, key);
                query.sets.move_behind_first();
            }
            None if query.groups.is_empty() => query.groups.push("1 = 1".into()),
            None => {}
        }
        query.above = Some(above);
        query
    }

    /// A statement over a filtered dimension and groups by its key.
    fn over_dimension(&mut self, tie: &Tie) -> String {
        let (fact, child) = (&self.tables.tables[0].name, &self.tables.tables[tie.child]);
        let (name, key, foreign) = (&child.name, &tie.key, &tie.foreign);
        let column = self.random.pick(&child.columns);
        let (one, other) = (self.literal(child, column), self.literal(child, column));
        let filter = match self.random.below(4) {
            0 => self.condition_over(&[tie.child], 1),
            1 => format!("{} IN ({one}, {other})", column.name),
            _ => format!("{} = {one}", column.name),
        };
        let equality = if self.random.chance(10) { "IS NOT DISTINCT FROM" } else { "=" };
        match self.random.below(5) {
            0 => {
                format!("SELECT {key} AS k, q.a0 FROM {name} JOIN ({{}}) AS q ON {key} {equality} q.g0 WHERE {filter}")
            }
            1 => format!("SELECT {key} AS k, q.a0 FROM {name} LEFT JOIN ({{}}) AS q ON {key} = q.g0 WHERE {filter}"),
            2 => format!(
                "SELECT {key} AS k FROM {name} WHERE {filter} AND {key} IN (SELECT g0 FROM ({{}}) AS q WHERE a0 > 2)"
            ),
            3 => format!(
                "SELECT {key} AS k FROM {name} WHERE {filter} \
                 AND NOT EXISTS (SELECT 1 FROM ({{}}) AS q WHERE q.g0 = {key} AND a0 > 2)"
            ),
            _ => format!(
                "SELECT {fact}.{foreign} AS k, COUNT(*) AS n, SUM(q.a0) AS s FROM {fact} \
                 JOIN {name} ON {fact}.{foreign} = {key} JOIN ({{}}) AS q \
                 ON q.g0 {equality} {fact}.{foreign} WHERE {filter} GROUP BY {fact}.{foreign}"
            ),
        }
    }
}
