//! What the values of a JSON file are, told in one pass over its bytes.
//!
//! A tree has a node for each column, each member of its objects and the items of its arrays. A node is of the kind of
//! its first value that is not NULL; numbers with a fraction or an exponent among them make all of them floats, and
//! whole numbers that only 64 bits without a sign hold decimals of 38 digits, as in DuckDB. The pass looks for tokens
//! and keeps no values; whether they stand where JSON has them is the reader's to judge.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::AsArray;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Fields, Schema};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;

/// Bytes that are read between two looks at the stop flag.
const PIECE: usize = 1 << 20;
/// Objects and arrays within one another; deeper ones are left to the reader.
const DEPTH_MAX: usize = 100;
/// The node of the records.
const ROOT: usize = 0;

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Number,
    Text,
    Object,
    Array,
}

/// The values at one place of the records.
#[derive(Debug, Clone, Default)]
struct Node {
    /// The kind of the first value.
    kind: Option<Kind>,
    is_float: bool,
    /// Whether a whole number is larger than those of 64 bits with a sign.
    is_long: bool,
    /// The first number, with its line.
    number: Option<(u64, String)>,
    /// The first number that is not whole, with its line.
    fraction: Option<(u64, String)>,
    members: Vec<(String, usize)>,
    items: Option<usize>,
    /// Whether the place is first met behind the records that types are taken from.
    is_late: bool,
}

/// A number that its column has no value for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) column: String,
    pub(super) line: u64,
    pub(super) number: String,
    /// The type of the column, or of what is within it.
    pub(super) kind: DataType,
}

/// The values of a file.
#[derive(Debug, Clone)]
pub(super) struct JsonValues {
    nodes: Vec<Node>,
    /// Whether the file is one array whose end is missing.
    pub(super) is_cut_off: bool,
}

impl JsonValues {
    /// Looks through a file, of whose first `records` types are taken; none where it is not whole.
    pub(super) fn read(
        path: &Path,
        compression: FileCompressionType,
        records: usize,
        stop: &AtomicBool,
    ) -> Option<JsonValues> {
        let mut file = compression.convert_read(File::open(path).ok()?).ok()?;
        let (mut piece, mut scan) = (vec![0; PIECE], Scan::new(records));
        loop {
            let bytes = file.read(&mut piece).ok()?;
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            if bytes == 0 {
                scan.values.is_cut_off = matches!(scan.open.first(), Some(Open::Records));
                return (scan.is_whole() || scan.values.is_cut_off).then_some(scan.values);
            }
            scan.take(&piece[..bytes])?;
        }
    }

    /// The columns of the records.
    pub(super) fn schema(&self) -> Schema {
        Schema::new(self.fields(ROOT))
    }

    fn fields(&self, node: usize) -> Fields {
        let members = self.nodes[node].members.iter().filter(|(_, member)| !self.nodes[*member].is_late);
        members.map(|(name, member)| Field::new(name, self.data_type(*member), true)).collect()
    }

    fn data_type(&self, node: usize) -> DataType {
        let found = &self.nodes[node];
        match found.kind {
            None => DataType::Null,
            Some(Kind::Bool) => DataType::Boolean,
            Some(Kind::Number) if found.is_float => DataType::Float64,
            Some(Kind::Number) if found.is_long => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
            Some(Kind::Number) => DataType::Int64,
            Some(Kind::Text) => DataType::Utf8,
            Some(Kind::Object) => DataType::Struct(self.fields(node)),
            Some(Kind::Array) => {
                let items = found.items.map_or(DataType::Null, |items| self.data_type(items));
                DataType::List(Arc::new(Field::new_list_field(items, true)))
            }
        }
    }

    /// The values of this file and of another one.
    pub(super) fn merge(&mut self, other: &JsonValues) {
        self.merge_nodes(ROOT, other, ROOT);
    }

    fn merge_nodes(&mut self, own: usize, other: &JsonValues, of_other: usize) {
        let found = &other.nodes[of_other];
        let node = &mut self.nodes[own];
        node.kind = node.kind.or(found.kind);
        node.is_float |= found.is_float;
        node.is_long |= found.is_long;
        node.is_late &= found.is_late;
        for (name, member) in &found.members {
            let own = self.member(own, name, other.nodes[*member].is_late);
            self.merge_nodes(own, other, *member);
        }
        if let Some(items) = found.items {
            let own = self.items(own);
            self.merge_nodes(own, other, items);
        }
    }

    /// The node of a member of objects, which is made if there is none.
    fn member(&mut self, node: usize, name: &str, is_late: bool) -> usize {
        if let Some((_, member)) = self.nodes[node].members.iter().find(|(known, _)| known == name) {
            return *member;
        }
        let member = self.nodes.len();
        self.nodes.push(Node { is_late, ..Node::default() });
        self.nodes[node].members.push((name.to_string(), member));
        member
    }

    /// The node of the items of arrays, which is made if there is none.
    fn items(&mut self, node: usize) -> usize {
        if let Some(items) = self.nodes[node].items {
            return items;
        }
        let items = self.nodes.len();
        self.nodes.push(Node::default());
        self.nodes[node].items = Some(items);
        items
    }

    /// The first number with a fraction in a column whose type has none, or in one of dates or times, where the reader
    /// would count units of it.
    pub(super) fn misfit(&self, fields: &Fields) -> Option<Misfit> {
        self.misfit_of_member(ROOT, fields)
    }

    fn misfit_of_member(&self, node: usize, fields: &Fields) -> Option<Misfit> {
        fields.iter().find_map(|field| {
            let (_, member) = self.nodes[node].members.iter().find(|(name, _)| name == field.name())?;
            let found = self.misfit_at(*member, field.data_type())?;
            Some(Misfit { column: format!("{}{}", field.name(), found.column), ..found })
        })
    }

    fn misfit_at(&self, node: usize, data_type: &DataType) -> Option<Misfit> {
        use DataType::{Date32, Date64, Time32, Time64, Timestamp};
        let found = &self.nodes[node];
        let misfit = |number: &Option<(u64, String)>| {
            let (line, number) = number.clone()?;
            Some(Misfit { column: String::new(), line, number, kind: data_type.clone() })
        };
        match data_type {
            DataType::Struct(fields) => {
                let found = self.misfit_of_member(node, fields)?;
                Some(Misfit { column: format!(".{}", found.column), ..found })
            }
            DataType::List(items) | DataType::LargeList(items) | DataType::FixedSizeList(items, _) => {
                let found = self.misfit_at(found.items?, items.data_type())?;
                Some(Misfit { column: format!("[]{}", found.column), ..found })
            }
            Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) => misfit(&found.number),
            other if other.is_integer() || other.is_temporal() => misfit(&found.fraction),
            _ => None,
        }
    }
}

/// An object or array that is open.
enum Open {
    /// The array that the records of a file may stand in.
    Records,
    /// The node, the member whose value comes next, and which member is looked for first.
    Object(usize, Option<usize>, usize),
    Array(usize),
}

/// The token that a byte is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    None,
    Key,
    Text,
    Number,
}

/// A pass over a file, piece after piece.
struct Scan {
    values: JsonValues,
    open: Vec<Open>,
    token: Token,
    is_escaped: bool,
    /// The bytes of a key or a number.
    bytes: Vec<u8>,
    line: u64,
    /// Records that types are still taken from, the one that is open among them.
    left: usize,
}

impl Scan {
    fn new(records: usize) -> Scan {
        Scan {
            values: JsonValues { nodes: vec![Node::default()], is_cut_off: false },
            open: Vec::new(),
            token: Token::None,
            is_escaped: false,
            bytes: Vec::new(),
            line: 1,
            left: records.saturating_add(1),
        }
    }

    fn is_whole(&self) -> bool {
        self.open.is_empty() && matches!(self.token, Token::None | Token::Number)
    }

    /// Takes the next bytes; none if they are not to be told from here.
    fn take(&mut self, piece: &[u8]) -> Option<()> {
        let mut at = 0;
        while at < piece.len() {
            match self.token {
                Token::Key | Token::Text => at += self.text(&piece[at..])?,
                Token::Number => {
                    let rest = &piece[at..];
                    let is_digit = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                    let end = rest.iter().position(|byte| !is_digit(byte)).unwrap_or(rest.len());
                    self.bytes.extend_from_slice(&rest[..end]);
                    at += end;
                    if end < rest.len() {
                        self.number()?;
                    }
                }
                Token::None => {
                    self.begin(piece[at])?;
                    at += 1;
                }
            }
        }
        Some(())
    }

    /// Takes bytes of a key or a text, up to its end; gives their number.
    fn text(&mut self, rest: &[u8]) -> Option<usize> {
        let is_key = self.token == Token::Key;
        if std::mem::take(&mut self.is_escaped) {
            self.bytes.extend(is_key.then_some(rest[0]));
            return Some(1);
        }
        let end = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        if is_key {
            self.bytes.extend_from_slice(&rest[..end]);
        }
        match rest.get(end) {
            None => return Some(end),
            Some(b'\\') => {
                self.is_escaped = true;
                self.bytes.extend(is_key.then_some(b'\\'));
            }
            Some(_) if is_key => self.key()?,
            Some(_) => self.token = Token::None,
        }
        Some(end + 1)
    }

    fn key(&mut self) -> Option<()> {
        self.token = Token::None;
        let written = std::mem::take(&mut self.bytes);
        let text = String::from_utf8(written).ok()?;
        let name = if text.contains('\\') { unescaped(&text)? } else { text };
        let is_late = self.left == 0;
        let Some(Open::Object(node, member, next)) = self.open.last_mut() else { return None };
        // Records mostly have the same members in the same order.
        let expected = self.values.nodes[*node].members.get(*next).filter(|(known, _)| *known == name);
        let found = expected.map(|(_, found)| *found);
        *member = Some(found.unwrap_or_else(|| self.values.member(*node, &name, is_late)));
        *next += 1;
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        self.token = Token::None;
        let text = String::from_utf8(std::mem::take(&mut self.bytes)).ok()?;
        let is_whole = text.parse::<i64>().is_ok();
        let node = self.note(Kind::Number)?;
        let (line, is_late) = (self.line, self.left == 0);
        let node = &mut self.values.nodes[node];
        let is_long = !is_whole && text.parse::<u64>().is_ok();
        node.is_long |= is_long && !is_late;
        node.is_float |= !is_whole && !is_long && !is_late;
        node.number.get_or_insert_with(|| (line, text.clone()));
        if !is_whole && node.fraction.is_none() && text.parse::<f64>().ok()?.fract() != 0.0 {
            node.fraction = Some((line, text));
        }
        Some(())
    }

    /// Notes a value of a kind where one comes next; gives its node.
    fn note(&mut self, kind: Kind) -> Option<usize> {
        let node = match self.open.last()? {
            Open::Records => ROOT,
            Open::Object(_, member, _) => (*member)?,
            Open::Array(node) => self.values.items(*node),
        };
        if self.left > 0 {
            self.values.nodes[node].kind.get_or_insert(kind);
        }
        Some(node)
    }

    /// Takes a byte between tokens.
    fn begin(&mut self, byte: u8) -> Option<()> {
        match byte {
            b'\n' => self.line += 1,
            b'{' => {
                let is_record = matches!(self.open.last(), None | Some(Open::Records));
                self.left = self.left.saturating_sub(usize::from(is_record));
                let node = if is_record { ROOT } else { self.note(Kind::Object)? };
                self.open.push(Open::Object(node, None, 0));
            }
            b'[' if self.open.is_empty() => self.open.push(Open::Records),
            b'[' => {
                let node = self.note(Kind::Array)?;
                self.open.push(Open::Array(node));
            }
            b'}' | b']' => {
                self.open.pop()?;
            }
            b',' => {
                if let Some(Open::Object(_, member, _)) = self.open.last_mut() {
                    *member = None;
                }
            }
            b'"' => match self.open.last() {
                Some(Open::Object(_, None, _)) => self.token = Token::Key,
                _ => {
                    self.note(Kind::Text)?;
                    self.token = Token::Text;
                }
            },
            b'-' | b'0'..=b'9' => {
                self.token = Token::Number;
                self.bytes.push(byte);
            }
            b't' | b'f' => drop(self.note(Kind::Bool)?),
            _ => {}
        }
        (self.open.len() <= DEPTH_MAX).then_some(())
    }
}

/// A key without its escapes.
fn unescaped(text: &str) -> Option<String> {
    let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true)]));
    let record = format!("{{\"k\":\"{text}\"}}");
    let mut reader = arrow::json::ReaderBuilder::new(schema).build(record.as_bytes()).ok()?;
    let batch = reader.next()?.ok()?;
    Some(batch.column(0).as_string::<i32>().value(0).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, records: usize, size: usize) -> Option<JsonValues> {
        let mut scan = Scan::new(records);
        text.as_bytes().chunks(size).try_for_each(|piece| scan.take(piece))?;
        scan.is_whole().then_some(scan.values)
    }

    #[test]
    fn kinds_are_those_of_first_values_whatever_the_pieces() {
        let int = |name: &str| Field::new(name, DataType::Int64, true);
        let float = |name: &str| Field::new(name, DataType::Float64, true);
        let long = |name: &str| Field::new(name, DataType::Decimal128(38, 0), true);
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        let nested = |name: &str, fields: Vec<Field>| Field::new(name, DataType::Struct(fields.into()), true);
        let list =
            |name: &str, item| Field::new(name, DataType::List(Arc::new(Field::new_list_field(item, true))), true);
        for (file, expected) in [
            ("{\"a\":1,\"b\":\"x\"}\n{\"a\":1.5}\n", vec![float("a"), text("b")]),
            ("{\"a\":1}\n{\"a\":null}\n{\"b\":-1e3}", vec![int("a"), float("b")]),
            ("[{\"a\":1},\n {\"a\":{\"x\":2}}]", vec![int("a")]),
            ("{\"a\":null}\n", vec![Field::new("a", DataType::Null, true)]),
            ("{\"o\":{\"x\":1,\"y\":[1,2.5]}}\n", vec![nested("o", vec![int("x"), list("y", DataType::Float64)])]),
            (
                "{\"a\\u0062\\\"\":\"}\\\\\\\"{\",\"c\":true}\n",
                vec![text("ab\""), Field::new("c", DataType::Boolean, true)],
            ),
            ("{\"big\":12345678901234567890}\n{\"big\":-1}", vec![long("big")]),
            ("{\"big\":12345678901234567890}\n{\"big\":0.5}", vec![float("big")]),
            ("{\"big\":123456789012345678901}\n", vec![float("big")]),
            ("{\"e\":[],\"f\":{}}\n", vec![list("e", DataType::Null), nested("f", vec![])]),
        ] {
            for size in 1..=file.len() {
                let found = values(file, usize::MAX, size).unwrap_or_else(|| panic!("{file:?} in pieces of {size}"));
                assert_eq!(found.schema(), Schema::new(expected.clone()), "{file:?} in pieces of {size}");
            }
        }
        for broken in ["{\"a\":1", "{\"a", "}", "\"a\""] {
            assert!(values(broken, usize::MAX, 2).is_none(), "{broken}");
        }
        assert!(values(&"{\"a\":[".repeat(200), usize::MAX, 64).is_none());
    }

    #[test]
    fn fractions_are_found_in_columns_that_have_none() {
        let file = "{\"a\":1,\"o\":{\"x\":[1]}}\n{\"a\":2.0,\"o\":{\"x\":[1,\n2.5]}}\n{\"late\":1,\"a\":3.25}\n";
        let found = values(file, 1, 5).unwrap();
        let fields = found.schema().fields;
        assert_eq!(fields.iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["a", "o"]);
        let misfit = |column: &str, line, number: &str, kind| {
            Some(Misfit { column: column.into(), line, number: number.into(), kind })
        };
        assert_eq!(found.misfit(&fields), misfit("a", 4, "3.25", DataType::Int64));
        let others = fields[1..].iter().cloned().collect();
        assert_eq!(found.misfit(&others), misfit("o.x[]", 3, "2.5", DataType::Int64));
        let days = vec![Field::new("a", DataType::Date32, true)];
        assert_eq!(found.misfit(&days.into()), misfit("a", 1, "1", DataType::Date32));
        let all = values(file, usize::MAX, 5).unwrap();
        assert_eq!(all.misfit(&all.schema().fields), None);
        let mut both = found.clone();
        both.merge(&all);
        assert_eq!(both.schema().fields.len(), 3);
    }
}
