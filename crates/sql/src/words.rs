//! SQL's words for what DataFusion's errors show as Rust's: syntax trees and expressions as `Debug` writes them, and
//! phrases about its own code.
//!
//! `Unsupported ast node in sqltorel: IsNormalized { expr: Identifier(Ident { value: "x", … }), … }` becomes
//! `expression x IS NORMALIZED`. A tree is read as far as it can be, names, literals, operators and calls are written
//! as SQL, and of what is left only the kind remains, in words. It would not be needed if DataFusion displayed trees.

use std::iter::Peekable;
use std::str::CharIndices;

/// How deep a tree is read; a deeper one has only its kind.
const DEPTH_MAX: usize = 100;
/// Phrases about DataFusion's code with those for people.
const PHRASES: [(&str, &str); 10] = [
    ("Unsupported ast node in sqltorel: ", "expression "),
    ("Unsupported ast node ", "in FROM: "),
    (" in create_relation", ""),
    ("ScalarSubquery(<subquery>)", "a subquery that refers to the rows around it"),
    ("While expanding wildcard, ", ""),
    (" not supported by ExprPlanner:", ":"),
    ("Unsupported expr ", "not a value: "),
    ("Dot access not supported for non-string expr: ", "a field of a struct behind a dot: "),
    ("Unsupported logical plan: Statement(TransactionStart)", "transactions"),
    ("Unsupported logical plan: Statement(TransactionEnd)", "transactions"),
];
/// Names before a parenthesis that begin a tree even where nothing in it has braces: literals and names.
const ROOTS: [&str; 23] = [
    "Boolean",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float16",
    "Float32",
    "Float64",
    "Utf8",
    "Utf8View",
    "LargeUtf8",
    "Date32",
    "Literal",
    "Column",
    "Identifier",
    "ObjectName",
    "Value",
    "PGCustomBinaryOperator",
    "Some",
];
/// Operators by their names in trees.
const OPERATORS: [(&str, &str); 16] = [
    ("Plus", "+"),
    ("Minus", "-"),
    ("Multiply", "*"),
    ("Divide", "/"),
    ("Modulo", "%"),
    ("Eq", "="),
    ("NotEq", "<>"),
    ("Lt", "<"),
    ("LtEq", "<="),
    ("Gt", ">"),
    ("GtEq", ">="),
    ("StringConcat", "||"),
    ("And", "AND"),
    ("Or", "OR"),
    ("BitwiseAnd", "&"),
    ("BitwiseOr", "|"),
];

/// The text of an error in SQL's words.
pub(crate) fn in_sql(text: &str) -> String {
    if let Some(expression) = text.strip_prefix("Physical plan does not support logical expression ") {
        return format!("{} in this place", in_sql(expression));
    }
    let mut said = without_trees(text);
    for (theirs, ours) in PHRASES {
        said = said.replace(theirs, ours);
    }
    said
}

/// The text with every tree in it as SQL.
fn without_trees(text: &str) -> String {
    let mut said = String::new();
    let mut at = 0;
    while let Some(start) = tree_start(text, at) {
        said.push_str(&text[at..start]);
        let mut reader = Reader { text, characters: text[start..].char_indices().peekable(), start, depth: 0 };
        let name = name_at(text, start);
        match reader.value() {
            Some(tree) if tree.is_tree() => {
                said.push_str(&tree.to_sql());
                at = reader.place();
            }
            // A tree that is cut off has only its kind.
            None if leads_to_struct(&text[start + name.len()..]) => {
                said.push_str(&words(name));
                said.push_str(" …");
                return said;
            }
            _ => {
                said.push_str(name);
                at = start + name.len();
            }
        }
    }
    said.push_str(&text[at..]);
    said
}

/// Whether braces follow a name, or the first of the names in parentheses behind it.
fn leads_to_struct(mut rest: &str) -> bool {
    while let Some(inner) = rest.strip_prefix('(') {
        rest = &inner[name_at(inner, 0).len()..];
    }
    rest.starts_with(" {")
}

/// Where the next name begins that could be a tree's.
fn tree_start(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || byte == b'"';
    (from..bytes.len()).find(|&start| {
        if !bytes[start].is_ascii_uppercase() || (start > 0 && is_name(bytes[start - 1])) {
            return false;
        }
        let rest = &text[start + name_at(text, start).len()..];
        rest.starts_with('(') || rest.starts_with(" {")
    })
}

/// The name that begins at a place.
fn name_at(text: &str, start: usize) -> &str {
    let end = text[start..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    end.map_or(&text[start..], |end| &text[start..start + end])
}

/// What `Debug` writes.
#[derive(Debug, Clone, PartialEq)]
enum Tree {
    /// Text in quotes.
    Text(String),
    /// A number, or whatever else has no parts.
    Word(String),
    /// A list, a tuple, or the parts of a map.
    List(Vec<Tree>),
    /// `Name(parts)`.
    Tuple(String, Vec<Tree>),
    /// `Name { field: part }`.
    Struct(String, Vec<(String, Tree)>),
}

impl Tree {
    /// Whether this is a piece of a program rather than text for people, which has parentheses too.
    fn is_tree(&self) -> bool {
        match self {
            Tree::Struct(..) => true,
            Tree::Tuple(name, parts) => {
                ROOTS.contains(&name.as_str()) && parts.first().is_some_and(Tree::is_part)
                    || parts.iter().any(Tree::is_tree)
            }
            Tree::List(parts) => parts.iter().any(Tree::is_tree),
            Tree::Text(_) | Tree::Word(_) => false,
        }
    }

    /// Whether this can be the first part of a literal or a name: types have other types there, or nothing.
    fn is_part(&self) -> bool {
        match self {
            Tree::Word(word) => {
                word.starts_with(|c: char| c.is_ascii_digit() || c == '-')
                    || ["NULL", "true", "false", "NaN", "inf"].contains(&word.as_str())
            }
            _ => true,
        }
    }

    fn field(&self, name: &str) -> Option<&Tree> {
        let Tree::Struct(_, fields) = self else { return None };
        fields.iter().find(|(field, _)| field == name).map(|(_, part)| part)
    }

    /// The tree as SQL, or its kind in words.
    fn to_sql(&self) -> String {
        match self {
            Tree::Text(text) => format!("'{text}'"),
            Tree::Word(word) => OPERATORS.iter().find(|(name, _)| name == word).map_or_else(
                || match word.as_str() {
                    "None" => String::new(),
                    word if word.starts_with(|c: char| c.is_ascii_uppercase()) => words(word),
                    word => word.to_string(),
                },
                |(_, sign)| (*sign).to_string(),
            ),
            Tree::List(parts) => list(parts),
            Tree::Tuple(name, parts) => tuple_to_sql(name, parts),
            Tree::Struct(name, _) => self.struct_to_sql(name),
        }
    }

    fn struct_to_sql(&self, name: &str) -> String {
        let sql = |field: &str| self.field(field).map(Tree::to_sql).unwrap_or_default();
        match name {
            "Ident" | "Word" => match self.field("value") {
                Some(Tree::Text(text)) if self.field("quote_style") != Some(&Tree::Word("None".into())) => {
                    format!("\"{text}\"")
                }
                Some(Tree::Text(text)) => text.clone(),
                _ => words(name),
            },
            "ValueWithSpan" | "TokenWithSpan" => {
                self.field("value").or(self.field("token")).map_or_else(|| words(name), Tree::to_sql)
            }
            "Column" => match (self.field("relation"), self.field("name")) {
                (Some(Tree::Tuple(_, relation)), Some(Tree::Text(column))) => {
                    format!("{}.{column}", relation.first().map(Tree::to_sql).unwrap_or_default())
                }
                (_, Some(Tree::Text(column))) => column.clone(),
                _ => words(name),
            },
            "Bare" | "Partial" | "Full" => match self.field("table") {
                Some(Tree::Text(table)) => table.clone(),
                _ => words(name),
            },
            "BinaryOp" | "BinaryExpr" => format!("{} {} {}", sql("left"), sql("op"), sql("right")),
            "UnaryOp" => format!("{} {}", sql("op"), sql("expr")),
            "Function" => format!("{}{}", sql("name"), sql("args")),
            "FunctionArgumentList" => match self.field("args") {
                Some(Tree::List(parts)) => format!("({})", list(parts)),
                _ => "()".into(),
            },
            "ScalarFunction" | "AggregateFunction" | "WindowFunction" => self.call(),
            "Query" | "Subquery" | "ScalarSubquery" => "a subquery".into(),
            _ => match self.field("expr") {
                Some(inner) => format!("{} {}", inner.to_sql(), words(name)),
                None => words(name),
            },
        }
    }

    /// The type that implements a function.
    fn function(&self) -> Option<&str> {
        match (self, self.field("inner")) {
            (_, Some(inner)) => inner.function(),
            (Tree::Tuple(_, parts), _) => parts.first()?.function(),
            (Tree::Struct(name, _) | Tree::Word(name), _) => Some(name),
            _ => None,
        }
    }

    /// A call of a function that is known by the type that implements it.
    fn call(&self) -> String {
        let function = self.field("func").or(self.field("fun")).and_then(Tree::function);
        let name = function.map_or_else(
            || "a function".into(),
            |name| words(name.trim_end_matches("Func")).to_lowercase().replace(' ', "_"),
        );
        let of_params = self.field("params").and_then(|params| params.field("args"));
        match self.field("args").or(of_params) {
            Some(Tree::List(parts)) => format!("{name}({})", list(parts)),
            _ => name,
        }
    }
}

fn list(parts: &[Tree]) -> String {
    parts.iter().map(Tree::to_sql).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn tuple_to_sql(name: &str, parts: &[Tree]) -> String {
    let first = || parts.first().map(Tree::to_sql).unwrap_or_default();
    let joined = |separator: &str| match parts.first() {
        Some(Tree::List(names)) => names.iter().map(Tree::to_sql).collect::<Vec<_>>().join(separator),
        _ => first(),
    };
    let bare = || match parts.first() {
        Some(Tree::Text(text)) => text.clone(),
        _ => first(),
    };
    match name {
        "ObjectName" | "CompoundIdentifier" => joined("."),
        "PGCustomBinaryOperator" => match parts.first() {
            Some(Tree::List(names)) => {
                let names = names.iter().map(|name| name.to_sql().replace('\'', "")).collect::<Vec<_>>();
                format!("OPERATOR({})", names.join("."))
            }
            _ => words(name),
        },
        "Number" | "Placeholder" => bare(),
        "Nested" => format!("({})", first()),
        "Tuple" | "Array" => format!("({})", joined(", ")),
        // Types, spans and the like say nothing more.
        "Span" | "Location" => String::new(),
        // Variants that hold a struct of their own kind, wrappers, literals.
        _ => match parts {
            [Tree::List(parts)] => format!("{}({})", words(name), list(parts)),
            _ => first(),
        },
    }
}

/// `IsNormalized` as `IS NORMALIZED`.
fn words(name: &str) -> String {
    let mut said = String::new();
    let mut before = None;
    for character in name.chars() {
        let is_new = character.is_ascii_uppercase() && before.is_some_and(|before: char| before.is_ascii_lowercase());
        if is_new {
            said.push(' ');
        }
        said.push(character.to_ascii_uppercase());
        before = Some(character);
    }
    said
}

/// Reads what `Debug` has written.
struct Reader<'t> {
    text: &'t str,
    characters: Peekable<CharIndices<'t>>,
    /// Where in the text reading began.
    start: usize,
    depth: usize,
}

impl Reader<'_> {
    /// Where the next character stands.
    fn place(&mut self) -> usize {
        self.characters.peek().map_or(self.text.len(), |(place, _)| self.start + place)
    }

    fn peek(&mut self) -> Option<char> {
        self.characters.peek().map(|(_, character)| *character)
    }

    fn take(&mut self, wanted: char) -> Option<()> {
        (self.peek()? == wanted).then(|| _ = self.characters.next())
    }

    fn skip_blanks(&mut self) {
        while self.characters.next_if(|(_, character)| character.is_whitespace()).is_some() {}
    }

    fn value(&mut self) -> Option<Tree> {
        self.depth += 1;
        let value = if self.depth <= DEPTH_MAX { self.value_within() } else { None };
        self.depth -= 1;
        value
    }

    fn value_within(&mut self) -> Option<Tree> {
        self.skip_blanks();
        let value = match self.peek()? {
            '"' | '\'' => Tree::Text(self.quoted()?),
            '[' => Tree::List(self.parts('[', ']')?),
            '(' => Tree::List(self.parts('(', ')')?),
            '{' => Tree::List(self.parts('{', '}')?),
            _ => {
                let name = self.word()?;
                match self.peek() {
                    Some('(') => Tree::Tuple(name, self.parts('(', ')')?),
                    _ if self.opens_struct() => Tree::Struct(name, self.fields()?),
                    _ => Tree::Word(name),
                }
            }
        };
        // A range, or an entry of a map: what follows belongs to it and says nothing.
        let rest = &self.text[self.place()..];
        if rest.starts_with("..") {
            self.characters.nth(1);
            self.value()?;
        } else if rest.starts_with(": ") {
            self.characters.next();
            self.value()?;
        }
        Some(value)
    }

    /// Whether braces follow a name, past one blank.
    fn opens_struct(&mut self) -> bool {
        let opens = self.text[self.place()..].starts_with(" {");
        if opens {
            self.characters.next();
        }
        opens
    }

    fn word(&mut self) -> Option<String> {
        let mut word = String::new();
        while let Some(character) = self.peek() {
            let is_range = character == '.' && self.text[self.place()..].starts_with("..");
            if is_range || !(character.is_alphanumeric() || "_-+.:<>#&@µ".contains(character)) {
                break;
            }
            if character == ':' && !self.text[self.place()..].starts_with("::") && !word.ends_with(':') {
                break;
            }
            word.push(character);
            self.characters.next();
        }
        (!word.is_empty()).then_some(word)
    }

    fn quoted(&mut self) -> Option<String> {
        let (_, quote) = self.characters.next()?;
        let mut text = String::new();
        loop {
            match self.characters.next()?.1 {
                '\\' => text.push(self.characters.next()?.1),
                end if end == quote => return Some(text),
                character => text.push(character),
            }
        }
    }

    /// What stands between brackets, by comma.
    fn parts(&mut self, open: char, close: char) -> Option<Vec<Tree>> {
        self.take(open)?;
        let mut parts = Vec::new();
        loop {
            self.skip_blanks();
            if self.take(close).is_some() {
                return Some(parts);
            }
            parts.push(self.value()?);
            self.skip_blanks();
            if self.take(',').is_none() && self.peek()? != close {
                return None;
            }
        }
    }

    fn fields(&mut self) -> Option<Vec<(String, Tree)>> {
        self.take('{')?;
        let mut fields = Vec::new();
        loop {
            self.skip_blanks();
            if self.take('}').is_some() {
                return Some(fields);
            }
            let name = self.word()?;
            // `Name { a: 1, .. }`
            if name.is_empty() || self.take(':').is_none() {
                return None;
            }
            fields.push((name, self.value()?));
            self.skip_blanks();
            if self.take(',').is_none() && self.peek()? != '}' {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_become_sql() {
        for (theirs, ours) in [
            (
                "Unsupported ast node in sqltorel: IsNormalized { expr: Identifier(Ident { value: \"x\", quote_style: \
                 None, span: Span(Location(1,8)..Location(1,9)) }), form: None, negated: false }",
                "expression x IS NORMALIZED",
            ),
            (
                "Unsupported ast node in sqltorel: Collate { expr: Value(ValueWithSpan { value: \
                 SingleQuotedString(\"a\"), span: Span(Location(1,8)..Location(1,11)) }), collation: ObjectName([\
                 Identifier(Ident { value: \"C\", quote_style: Some('\"'), span: Span(Location(1,20)..Location(1,23)) \
                 })]) }",
                "expression 'a' COLLATE",
            ),
            ("a precision of Some(2)", "a precision of 2"),
            ("got Literal(Utf8(\"x\"), None)", "got 'x'"),
            ("count(Int64(1)) FILTER (WHERE sum(Int64(1)) > Int64(1))", "count(1) FILTER (WHERE sum(1) > 1)"),
            (
                "no BinaryExpr(BinaryExpr { left: Column(Column { relation: Some(Bare { table: \"t\" }), name: \"a\" \
                 }), op: Plus, right: Literal(Int64(1), None) }) here",
                "no t.a + 1 here",
            ),
            (
                "ScalarFunction(ScalarFunction { func: ScalarUDF { inner: AbsFunc { signature: Signature { \
                 type_signature: Numeric(1), volatility: Immutable } } }, args: [Column(Column { relation: None, name: \
                 \"a\" })] })",
                "abs(a)",
            ),
            (
                "Unsupported binary operator: PGCustomBinaryOperator([\"pg\", \"+\"])",
                "Unsupported binary operator: OPERATOR(pg.+)",
            ),
            (
                "Physical plan does not support logical expression ScalarSubquery(<subquery>)",
                "a subquery that refers to the rows around it in this place",
            ),
            (
                "WindowFunction(WindowFunction { fun: WindowUDF(WindowUDF { inner: RowNumber { signature: Signature { \
                 volatility: Immutable } } }), params: WindowFunctionParams { args: [], order_by: [] } })",
                "row_number()",
            ),
            (
                "Unsupported expr Subquery(Query { with: None, body: Select(Select { select_token: Token",
                "not a value: SUBQUERY …",
            ),
        ] {
            assert_eq!(in_sql(theirs), ours);
        }
        let deep = format!("{}1{}", "Nested { expr: ".repeat(100_000), " }".repeat(100_000));
        assert_eq!(in_sql(&deep), "NESTED …");
    }

    #[test]
    fn text_for_people_stays() {
        for text in [
            "sum(Utf8) does not exist; there are sum(Decimal), sum(Int64)",
            "Cannot cast Timestamp(Nanosecond, None) to Decimal128(12, 2)",
            "Coercion(TypeSignatureClass::Integer) is what it takes",
            "List(Int64) and Struct(\"a\": Int64)",
            "Too many columns! (two)",
            "Unsupported SQL statement: GRANT SELECT ON t TO x",
        ] {
            assert_eq!(in_sql(text), text);
        }
    }
}
