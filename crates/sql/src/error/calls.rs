//! Calls and variables that do not exist, and values without a type: what is to be known of them, in place of what
//! DataFusion says.

use super::{SqlError, hint, other_names};
use crate::nearest::distance;
use crate::words::types_in_sql;

/// What is to be known of a function or a variable that does not exist; none for any other text.
pub(super) fn unknown(text: &str) -> Option<String> {
    let call = no_such_form(text)
        .or_else(|| no_such_call(text))
        .or_else(|| no_such_function(text))
        .or_else(|| no_such_table_function(text))
        .or_else(|| no_such_variable(text));
    call.or_else(|| no_type(text))
}

/// Most edits between an unknown function and one that is named in its place.
const NEAR_EDITS: usize = 2;

/// Functions that exist over windows alone.
const WINDOW_FUNCTIONS: [&str; 8] =
    ["cume_dist", "dense_rank", "lag", "lead", "ntile", "percent_rank", "rank", "row_number"];

/// What a function of ours says of a call with other arguments.
fn no_such_form(text: &str) -> Option<String> {
    let (_, reason) = text.split_once("user-defined coercion failed with: Error during planning: ")?;
    // DataFusion's own text of the call follows.
    const END: &str = "a CAST may be missing";
    reason.find(END).map(|at| reason[..at + END.len()].to_string())
}

impl SqlError {
    /// This error with the nearest of `functions` named, if it is about a function that does not exist and has no other
    /// name here.
    pub(crate) fn with_functions(self, functions: impl FnOnce() -> Vec<String>) -> SqlError {
        match self {
            SqlError::At { error, position } => {
                SqlError::At { error: Box::new(error.with_functions(functions)), position }
            }
            SqlError::Planning(text) => SqlError::Planning(match unknown_function(&text) {
                Some(name) => format!("{text}{}", hint(&near(name, functions()))),
                None => text,
            }),
            other => other,
        }
    }
}

fn unknown_function(text: &str) -> Option<&str> {
    text.strip_prefix("unknown function '")?.strip_suffix('\'')
}

/// Names of functions are short: with more edits another one has nothing to do with it.
fn near(name: &str, functions: Vec<String>) -> Option<String> {
    let edits = functions.into_iter().filter_map(|function| Some((distance(name, &function)?, function)));
    edits.filter(|(edits, _)| *edits <= NEAR_EDITS).min().map(|(_, function)| function)
}

/// What is to be known of a function that does not exist, and what to write in its place. DataFusion names another one,
/// however far.
fn no_such_function(text: &str) -> Option<String> {
    let (name, _) = text.strip_prefix("Invalid function '")?.split_once('\'')?;
    if WINDOW_FUNCTIONS.contains(&name) {
        return Some(format!("{name} is a window function and needs OVER (…)"));
    }
    if let Some(other) = other_names::in_place_of(name) {
        return Some(format!("unknown function '{name}'; write {other}"));
    }
    Some(format!("unknown function '{name}'"))
}

/// What is to be known of a table function that does not exist.
fn no_such_table_function(text: &str) -> Option<String> {
    let name = text.strip_prefix("table function '")?.strip_suffix("' not found")?;
    Some(match other_names::in_place_of_table(name) {
        Some(ours) => format!("unknown function '{name}'; write {ours}"),
        None => format!("unknown function '{name}'"),
    })
}

/// What is to be known of a call with arguments that the function does not take: the call, and what could stand there.
fn no_such_call(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("No function matches the given name and argument types '")?;
    let (call, rest) = rest.split_once('\'')?;
    let (_, candidates) = rest.split_once("Candidate functions:")?;
    // A function that checks its arguments itself has no candidates that say anything.
    let is_said = |line: &&str| !line.is_empty() && !line.contains("UserDefined");
    let mut candidates: Vec<String> = candidates.lines().map(str::trim).filter(is_said).map(candidate).collect();
    candidates.dedup();
    if candidates.is_empty() {
        return Some(format!("{call} does not exist; the function takes other arguments"));
    }
    Some(format!("{call} does not exist; there are {}; a CAST may be missing", candidates.join(", ")))
}

/// A form of a function with SQL's names of types, families of types included.
fn candidate(form: &str) -> String {
    let told = types_in_sql(form);
    let Some((name, arguments)) = told.split_once('(') else { return told };
    let families = [("Decimal", "DECIMAL"), ("Duration", "INTERVAL"), ("Interval", "INTERVAL")];
    let arguments = families.iter().fold(arguments.to_string(), |told, (theirs, ours)| told.replace(theirs, ours));
    format!("{name}({arguments}")
}

/// What is to be known of `@@name`, which nothing answers.
fn no_such_variable(text: &str) -> Option<String> {
    let name = text.strip_prefix("variable [\"")?.strip_suffix("\"] has no type information")?;
    Some(format!("unknown variable '{}'", name.replace("\", \"", ".")))
}

/// What is to be known of a NULL or a parameter that a recursive query begins with.
fn no_type(text: &str) -> Option<String> {
    let found = types_in_sql(text.strip_prefix("Cannot automatically convert ")?.strip_suffix(" to Null")?);
    Some(format!(
        "the first term of a recursive query has no type where it is NULL or a parameter, and the other is {found}; \
         write CAST(… AS {found}) in the first, or declare the parameter's type, PREPARE name(type, …) AS"
    ))
}
