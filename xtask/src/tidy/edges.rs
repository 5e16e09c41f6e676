//! Which crate may use which, from `cargo metadata`.
//!
//! The project's crates point one way (`python → warpcube → server → door → sql → {engine, palo → cube} →
//! {arrays, column, stream} → {gpu, vector}`), and some libraries belong to one crate each: what only `sql` may name,
//! no other crate can come to depend on.

use serde_json::Value;

use crate::process::{Result, cargo, output};

/// Each crate with the crates of ours that it may use, and those its tests may use besides.
const EDGES: [(&str, &[&str], &[&str]); 16] = [
    ("gpu", &[], &[]),
    ("arrays", &["gpu"], &[]),
    ("vector", &[], &[]),
    ("column", &["gpu", "vector"], &[]),
    ("stream", &["gpu"], &[]),
    ("engine", &["column", "gpu", "vector"], &[]),
    ("cube", &["arrays", "column", "gpu"], &[]),
    ("palo", &["cube"], &[]),
    ("datagen", &[], &[]),
    ("sql", &["engine", "palo", "cube", "arrays", "column", "gpu"], &["datagen"]),
    ("bench", &["sql", "engine", "cube", "arrays", "column", "stream", "gpu", "datagen"], &[]),
    ("door", &["sql"], &[]),
    ("server", &["door", "sql"], &[]),
    ("warpcube", &["server", "door", "bench", "sql", "engine", "palo", "cube", "column", "gpu"], &[]),
    ("python", &["warpcube", "cube"], &[]),
    ("xtask", &["bench"], &[]),
];

/// Libraries with the only crates that may use them.
const OWNED: [(&str, &[&str]); 25] = [
    ("cudarc", &["gpu"]),
    ("libc", &["gpu"]),
    ("libloading", &["gpu"]),
    ("datafusion", &["sql"]),
    ("datafusion-datasource", &["sql"]),
    ("datafusion-datasource-json", &["sql"]),
    ("datafusion-proto", &["sql"]),
    ("object_store", &["sql"]),
    ("parquet", &["sql", "door", "warpcube", "datagen"]),
    ("tokio", &["sql", "bench", "door", "server", "warpcube", "python"]),
    ("tpcdsgen", &["datagen"]),
    ("tpcdsgen-arrow", &["datagen"]),
    ("tpchgen", &["datagen"]),
    ("tpchgen-arrow", &["datagen"]),
    ("clap", &["warpcube", "bench", "xtask"]),
    ("rustyline", &["warpcube"]),
    ("indicatif", &["warpcube"]),
    ("mimalloc", &["warpcube"]),
    ("pyo3", &["python"]),
    ("arrow-pyarrow", &["python"]),
    ("arrow-flight", &["server"]),
    ("axum", &["server"]),
    ("hyper", &["server"]),
    ("hyper-util", &["server"]),
    ("tonic", &["server"]),
];

/// Findings among the workspace's crates.
pub(super) fn check() -> Result<Vec<String>> {
    let text = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(findings(&metadata))
}

fn findings(metadata: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    for package in list(metadata, "packages") {
        let name = short(text(package, "name"));
        let Some((_, uses, tests_use)) = EDGES.iter().find(|(known, _, _)| *known == name) else {
            findings.push(format!("crate {name}: not in the table of xtask/src/tidy/edges.rs"));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let used = text(dependency, "name");
            let in_tests = text(dependency, "kind") == "dev";
            let ours = used.starts_with("warpcube") || used == "xtask";
            let allowed = uses.contains(&short(used)) || in_tests && tests_use.contains(&short(used));
            if ours && !allowed {
                findings.push(format!("crate {name}: may not use {}", short(used)));
            }
            let owned = OWNED.iter().find(|(library, _)| *library == used);
            if let Some((_, owners)) = owned.filter(|(_, owners)| !in_tests && !owners.contains(&name)) {
                findings.push(format!("crate {name}: may not use {used}, which belongs to {}", owners.join(" and ")));
            }
        }
    }
    findings
}

fn short(name: &str) -> &str {
    name.strip_prefix("warpcube-").unwrap_or(name)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(name: &str, used: &str, kind: Option<&str>) -> Vec<String> {
        let dependency = json!({"name": used, "kind": kind});
        findings(&json!({"packages": [{"name": name, "dependencies": [dependency]}]}))
    }

    #[test]
    fn edges_point_one_way() {
        assert!(found("warpcube-sql", "warpcube-engine", None).is_empty());
        assert!(found("warpcube-sql", "warpcube-datagen", Some("dev")).is_empty());
        assert_eq!(found("warpcube-sql", "warpcube-datagen", None), ["crate sql: may not use datagen"]);
        assert_eq!(found("warpcube-engine", "warpcube-sql", None), ["crate engine: may not use sql"]);
        assert_eq!(found("warpcube-other", "serde", None).len(), 1);
    }

    #[test]
    fn libraries_have_owners() {
        let finding = "crate engine: may not use datafusion, which belongs to sql";
        assert_eq!(found("warpcube-engine", "datafusion", None), [finding]);
        assert!(found("warpcube-sql", "datafusion", None).is_empty());
    }
}
