//! Parts of paths, and sizes in words.

use arrow::array::AsArray;
use datafusion::error::Result;

use super::{Boolean, Long, Own, Text, Texts};

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("parse_filename", &[Text], Text, |args| {
        args.texts(|row| Ok(Some(file_name(args.text(0).value(row)).to_string())))
    }),
    Own::new("parse_filename", &[Text, Boolean], Text, |args| {
        args.texts(|row| {
            let name = file_name(args.text(0).value(row));
            let is_cut = args.columns[1].as_boolean().value(row);
            let front = name.rsplit_once('.').map_or(name, |(front, _)| front);
            Ok(Some(if is_cut { front } else { name }.to_string()))
        })
    }),
    Own::new("parse_dirname", &[Text], Text, |args| {
        args.texts(|row| {
            let path = args.text(0).value(row);
            let parts = parts(path);
            Ok(Some(if parts.len() > 1 { parts[0].clone() } else { String::new() }))
        })
    }),
    Own::new("parse_dirpath", &[Text], Text, |args| {
        args.texts(|row| {
            let path = args.text(0).value(row);
            Ok(Some(path.rfind(is_separator).map_or("", |at| &path[..at]).to_string()))
        })
    }),
    Own::new("parse_path", &[Text], Texts, |args| args.lists(|row| Ok(Some(parts(args.text(0).value(row)))))),
    Own::new("path_join", &[Text, Text], Text, |args| {
        args.texts(|row| {
            let parts = (0..args.columns.len()).map(|place| args.text(place).value(row));
            Ok(Some(parts.fold(String::new(), joined)))
        })
    })
    .repeating_last(),
    Own::new("format_bytes", &[Long], Text, |args| args.texts(|row| size(args.longs(0).value(row)))),
];

/// A path below another; a path from the root stays as it is.
fn joined(front: String, part: &str) -> String {
    match front.is_empty() || part.starts_with('/') {
        true => part.to_string(),
        false => format!("{}/{part}", front.trim_end_matches('/')),
    }
}

fn is_separator(character: char) -> bool {
    matches!(character, '/' | '\\')
}

fn file_name(path: &str) -> &str {
    path.rsplit(is_separator).next().unwrap_or(path)
}

/// The root, if the path begins with it, and the names.
fn parts(path: &str) -> Vec<String> {
    let root = path.chars().next().filter(|first| is_separator(*first)).map(String::from);
    root.into_iter().chain(path.split(is_separator).filter(|name| !name.is_empty()).map(String::from)).collect()
}

/// A number of bytes by the largest unit of 1,024 that it has one of.
fn size(bytes: i64) -> Result<Option<String>> {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let sign = if bytes < 0 { "-" } else { "" };
    let mut whole = bytes.unsigned_abs();
    if whole < 1024 {
        let unit = if whole == 1 { "byte" } else { "bytes" };
        return Ok(Some(format!("{sign}{whole} {unit}")));
    }
    let mut unit = 0;
    let mut rest = 0;
    for (at, _) in UNITS.iter().enumerate() {
        if whole < 1024 {
            break;
        }
        (rest, whole, unit) = (whole % 1024, whole / 1024, at);
    }
    Ok(Some(format!("{sign}{whole}.{} {}", rest * 10 / 1024, UNITS[unit])))
}
