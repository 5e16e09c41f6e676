//! Tests of settings.

use super::*;

#[test]
fn what_is_shown_is_taken() {
    let mut settings = Settings::default();
    for (name, value) in [
        ("warpcube.device", "cuda:3"),
        ("warpcube.device_memory", "80%"),
        ("warpcube.host_memory", "3GiB"),
        ("warpcube.float_sums", "exact"),
        ("warpcube.load_factor", "0.5"),
        ("warpcube.memory_limit", "1000001"),
        ("warpcube.timeout", "1500ms"),
        ("warpcube.format", "ndjson"),
        ("warpcube.dump_source", "/c/D"),
        ("warpcube.spill_folder", "/a/B"),
        ("warpcube.encoded_files", "write"),
        ("warpcube.encoded_folder", "/e/F"),
        ("warpcube.timing", "on"),
        ("warpcube.null", "NULL"),
        ("warpcube.header", "off"),
        ("warpcube.separator", ";"),
        ("warpcube.expanded", "auto"),
        ("warpcube.topk", "radix_select"),
    ] {
        settings.assign(name, value).unwrap();
        assert_eq!(settings.value(name).unwrap(), value, "{name}");
    }
    let defaults = Settings::default();
    let of_database: Vec<_> = SETTINGS.iter().filter(|info| info.owner == Owner::Database).collect();
    assert_eq!(of_database.len(), 7);
    for info in of_database {
        let value = match info.name {
            "warpcube.device" => "cpu",
            "warpcube.allowed_paths" | "warpcube.spill_folder" => "/",
            _ => "1",
        };
        let mut other = Settings::default();
        other.assign(info.name, value).unwrap();
        assert_ne!(other.database, defaults.database, "{}", info.name);
        other.database = defaults.database.clone();
        assert!(SETTINGS.iter().all(|info| (info.get)(&other) == (info.get)(&defaults)), "{}", info.name);
    }
    for info in SETTINGS {
        let shown = (info.get)(&settings);
        let mut again = settings.clone();
        again.assign(info.name, &shown).unwrap();
        assert_eq!((info.get)(&again), shown, "{}", info.name);
    }
}

#[test]
fn every_format_is_named() {
    let expected = setting("warpcube.format").unwrap().expected;
    for info in &crate::values::FORMATS {
        assert!(expected.contains(&format!("'{}'", info.name)), "{}", info.name);
        assert_eq!(info.format.to_string().parse(), Ok(info.format));
    }
}

#[test]
fn mistakes_name_what_is_near_and_what_is_expected() {
    let mut settings = Settings::default();
    let unknown = settings.assign("warpcube.devcie", "cpu").unwrap_err().to_string();
    assert_eq!(unknown, "CFG-001 unknown setting 'warpcube.devcie'; did you mean 'warpcube.device'?");
    let wrong = settings.assign("warpcube.timeout", "soon").unwrap_err();
    let wrong = wrong.with_origin(&SettingOrigin::Environment("WARPCUBE_TIMEOUT".into())).to_string();
    assert!(wrong.starts_with("CFG-002 warpcube.timeout = 'soon' (from environment WARPCUBE_TIMEOUT)"), "{wrong}");
    assert_eq!(settings.timeout, None);
}
