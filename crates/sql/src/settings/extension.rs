//! The settings as DataFusion's configuration has them.

use std::any::Any;

use datafusion::common::Result as DataFusionResult;
use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};

use super::{PREFIX, SETTINGS, SettingInfo, Settings};

impl ConfigExtension for Settings {
    const PREFIX: &'static str = PREFIX;
}

impl ExtensionOptions for Settings {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> DataFusionResult<()> {
        Ok(self.assign(&format!("{PREFIX}.{key}"), value)?)
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |setting: &SettingInfo| ConfigEntry {
            key: setting.name.to_string(),
            value: Some((setting.get)(self)),
            description: setting.description,
        };
        SETTINGS.iter().map(entry).collect()
    }
}
