//! The settings of the program, read from the source text that declares them.
//!
//! `crates/sql/src/settings.rs` holds one table of `SettingInfo` and one `Default`. Linking that crate would bring all
//! of DataFusion in; its text is plain enough to be read, and what is not understood is an error, never a guess.

use crate::process::Result;

/// The file that declares them.
pub(crate) const SOURCE: &str = "crates/sql/src/settings.rs";

/// One setting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Full name.
    pub(crate) name: String,
    /// What it takes.
    pub(crate) expected: String,
    /// What it does.
    pub(crate) description: String,
    /// Its value when nothing sets it.
    pub(crate) default: String,
    /// Whose it is: `database` or `connection`.
    pub(crate) owner: String,
}

/// All settings in the order of the source.
///
/// # Errors
/// What of the source is not understood.
pub(crate) fn read(source: &str) -> Result<Vec<Setting>> {
    let table = source.split_once("static SETTINGS").ok_or("there is no 'static SETTINGS'")?.1;
    let table = table.split_once("\n];").ok_or("'static SETTINGS' has no end")?.0;
    let defaults = source.split_once("impl Default for Settings").ok_or("there is no 'impl Default for Settings'")?.1;
    let defaults = defaults.split_once("\n}").ok_or("'impl Default for Settings' has no end")?.0;
    let mut settings = Vec::new();
    for entry in table.split("SettingInfo {").skip(1) {
        let name = text(entry, "name", source)?;
        let expected = text(entry, "expected", source)?;
        let description = text(entry, "description", source)?;
        let default =
            default(&name, &expected, defaults, source).map_err(|what| format!("default of {name}: {what}"))?;
        let owner = entry.split_once("owner: Owner::").and_then(|(_, rest)| rest.split(',').next());
        let owner = owner.ok_or_else(|| format!("{name} has no owner"))?.to_lowercase();
        settings.push(Setting { name, expected, description, default, owner });
    }
    match settings.is_empty() {
        true => Err("no setting was found".into()),
        false => Ok(settings),
    }
}

/// The text of a field: a literal, or the name of a constant.
fn text(entry: &str, field: &str, source: &str) -> Result<String> {
    let missing = || format!("no field '{field}' in {}", entry.lines().take(2).collect::<String>());
    let value = entry.split_once(&format!("{field}:")).ok_or_else(missing)?.1.trim_start();
    match value.strip_prefix('"') {
        Some(rest) => literal(rest).ok_or_else(missing),
        None => {
            let constant = value.split(',').next().unwrap_or_default().trim();
            let value = constant_of(constant, source).ok_or_else(missing)?;
            value.strip_prefix('"').and_then(literal).ok_or_else(missing)
        }
    }
}

/// A string literal after its opening quote; a backslash at a line's end joins lines.
fn literal(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return Some(value),
            '\\' => match characters.next()? {
                '\n' => {
                    let rest = characters.as_str().trim_start();
                    characters = rest.chars();
                }
                escaped @ ('"' | '\\' | '\'') => value.push(escaped),
                _ => return None,
            },
            other => value.push(other),
        }
    }
    None
}

/// What stands behind `const NAME: … =`.
fn constant_of<'s>(name: &str, source: &'s str) -> Option<&'s str> {
    let declared = source.split_once(&format!("const {name}:"))?.1;
    Some(declared.split_once('=')?.1.split(';').next()?.trim())
}

/// The default as `SHOW` writes it.
fn default(name: &str, expected: &str, defaults: &str, source: &str) -> Result<String> {
    let field = name.rsplit('.').next().unwrap_or(name);
    let line = defaults.lines().find_map(|line| line.trim().strip_prefix(field)?.strip_prefix(':'));
    let value = line.ok_or("there is no such field")?.trim().trim_end_matches(',');
    let value = constant_of(value, source).unwrap_or(value);
    if let Some(text) = value.strip_prefix('"') {
        return literal(text).ok_or_else(|| format!("{value} is not understood"));
    }
    if let Some((left, right)) = value.split_once(" << ") {
        let (left, right) = (number(left)?, number(right)?);
        return Ok((left << right).to_string());
    }
    match value {
        "true" => Ok("on".into()),
        "false" => Ok("off".into()),
        "None" if expected.contains("'auto'") => Ok("auto".into()),
        "None" if expected.contains("'off'") => Ok("off".into()),
        "None" if expected.contains("'all'") => Ok("all".into()),
        value => match value.split_once("::") {
            Some((_, variant)) if variant.chars().all(char::is_alphanumeric) => Ok(variant.to_lowercase()),
            // A fraction is shown as it is written, if that is how it would be printed.
            _ if value.parse::<f64>().is_ok_and(|number| number.to_string() == value) => Ok(value.into()),
            _ => number(value).map(|number| number.to_string()),
        },
    }
}

fn number(text: &str) -> Result<u64> {
    text.trim().replace('_', "").parse().map_err(|_| format!("'{text}' is not understood"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"
const LIMIT: usize = 16 << 20;
const COUNT: &str = "a whole number";
impl Default for Settings {
    fn default() -> Self {
        Settings {
            device: DeviceChoice::Auto,
            limit: LIMIT,
            timeout: None,
            timing: None,
        }
    }
}
pub static SETTINGS: &[SettingInfo] = &[
    SettingInfo {
        name: "warpcube.device",
        expected: "'auto' or 'cpu'",
        description: "The device: \
                      one of them.",
        owner: Owner::Database,
        get: |s| s.device.to_string(),
    },
    SettingInfo { name: "warpcube.limit", expected: COUNT, description: "Most.", owner: Owner::Connection, get: |s| s },
    SettingInfo {
        name: "warpcube.timeout",
        expected: "'30s' or 'off'",
        description: "Longest.",
        owner: Owner::Connection,
        get: |s| s
    },
    SettingInfo {
        name: "warpcube.timing",
        expected: "'auto', 'on' or 'off'",
        description: "Times.",
        owner: Owner::Connection,
        get: |s| s
    },
];
"#;

    #[test]
    fn the_table_is_read() {
        let settings = read(EXAMPLE).unwrap();
        let defaults: Vec<_> = settings.iter().map(|setting| setting.default.as_str()).collect();
        assert_eq!(defaults, ["auto", "16777216", "off", "auto"]);
        assert_eq!(settings[0].description, "The device: one of them.");
        assert_eq!(settings[1].expected, "a whole number");
        assert_eq!((settings[0].owner.as_str(), settings[1].owner.as_str()), ("database", "connection"));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(read("").is_err());
        assert!(read(&EXAMPLE.replace("16 << 20", "size_of::<u8>() * 3")).is_err());
        assert!(read(&EXAMPLE.replace("            limit: LIMIT,\n", "")).is_err());
        assert!(read(&EXAMPLE.replace("        owner: Owner::Database,\n", "")).is_err());
    }
}
