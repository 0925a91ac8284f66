//! Sources of settings, in order of precedence: the command line, the environment, a file, the defaults.
//!
//! Guarantees: an unknown setting is an error that names its source, with a suggestion; so is an invalid value.
//! Non-goals: reading files and flags.

use toml::de::DeTable;

use super::kind::RawValue;
use super::settings::{Layer, SettingDefault, settings};
use super::{Config, ConfigError};

/// Prefix of all environment variables of settings.
pub const ENV_PREFIX: &str = "TRUG_";
/// Variables that the command line reads itself.
const CLI_ONLY_VARIABLES: &[&str] = &["TRUG_CONFIG", "TRUG_DATA", "TRUG_LOG"];
/// Minimum Jaro-Winkler similarity of a suggested name; 1 means equality.
const LIKENESS_MIN: f64 = 0.8;

/// All sources, the strongest first.
#[derive(Clone, Debug)]
pub struct Sources(Vec<Source>);

#[derive(Clone, Debug)]
struct Source {
    name: String,
    layer: Layer,
}

/// Settings of a running server.
#[derive(Clone, Debug)]
pub struct ActiveConfig(Layer);

/// Result of a reload.
#[derive(Clone, Debug)]
pub struct Reloaded {
    pub running: ActiveConfig,
    pub config: Config,
    /// Settings with new values.
    pub changed: Vec<&'static str>,
    /// Settings whose new values require a restart.
    pub unchanged: Vec<&'static str>,
}

/// Effective setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveSetting {
    pub name: &'static str,
    /// Value as TOML, or a description without a value.
    pub value: SettingDefault,
    /// Source of the value.
    pub source: String,
}

impl Sources {
    /// Creates the defaults alone.
    pub fn new() -> Self {
        Self(vec![Source { name: "default".to_owned(), layer: Layer::defaults() }])
    }

    /// Adds a source that takes precedence over the earlier ones.
    #[must_use]
    pub fn overlay(mut self, name: impl Into<String>, layer: Layer) -> Self {
        self.0.insert(0, Source { name: name.into(), layer });
        self
    }

    /// Returns the effective, validated configuration.
    pub fn config(&self) -> Result<Config, ConfigError> {
        self.check(self.merged())
    }

    /// Returns the settings of a server that starts now.
    pub fn running(&self) -> ActiveConfig {
        ActiveConfig(self.merged())
    }

    fn merged(&self) -> Layer {
        let layers = self.0.iter().map(|source| source.layer.clone());
        layers.reduce(Layer::over).unwrap_or_default()
    }

    /// Validates a layer; the error names the source.
    fn check(&self, layer: Layer) -> Result<Config, ConfigError> {
        let in_force = self.in_force_of(&layer);
        let checked = Config::checked(layer).map(|config| Config { in_force, ..config });
        checked.map_err(|error| {
            let source = error.setting().and_then(|setting| self.source_of(setting));
            match source {
                Some((name, _)) => error.with_source(name),
                None => error,
            }
        })
    }

    /// Returns every setting with its value and source.
    pub fn effective(&self) -> Vec<EffectiveSetting> {
        let found = settings().into_iter().map(|setting| match self.source_of(setting.name) {
            Some((source, value)) => EffectiveSetting {
                name: setting.name,
                value: SettingDefault::Value(value),
                source: source.to_owned(),
            },
            None => EffectiveSetting {
                name: setting.name,
                value: setting.default,
                source: "default".to_owned(),
            },
        });
        found.collect()
    }

    /// Returns every setting of a running server. A setting whose sources have a newer value is marked.
    fn in_force_of(&self, running: &Layer) -> Vec<EffectiveSetting> {
        let values = running.said();
        let mut all = self.effective();
        for setting in &mut all {
            let value = values.iter().find(|(name, _)| *name == setting.name);
            let Some((_, value)) = value else { continue };
            let value = SettingDefault::Value(value.clone());
            if setting.value != value {
                *setting = EffectiveSetting {
                    name: setting.name,
                    value,
                    source: format!("{}, changed since the start", setting.source),
                };
            }
        }
        all
    }

    /// Returns the source of a setting and its value.
    fn source_of(&self, setting: &str) -> Option<(&str, String)> {
        self.0.iter().find_map(|source| {
            let mut said = source.layer.said().into_iter();
            let (_, value) = said.find(|(name, _)| *name == setting)?;
            Some((source.name.as_str(), value))
        })
    }
}

impl ActiveConfig {
    /// Returns the settings after a reload of these sources. Changes nothing if any of them is invalid.
    pub fn reload(&self, sources: &Sources) -> Result<Reloaded, ConfigError> {
        sources.config()?;
        let (was, said) = (&self.0, sources.merged());
        let mut running = was.clone().changed_to(said.clone());
        // Whether a listener uses TLS is fixed when it starts.
        if was.tls_certificate_file.is_some() != said.tls_certificate_file.is_some() {
            running.tls_certificate_file.clone_from(&was.tls_certificate_file);
            running.tls_key_file.clone_from(&was.tls_key_file);
        }
        let config = sources.check(running.clone())?;
        let (changed, unchanged) = (differing(was, &running), differing(&running, &said));
        Ok(Reloaded { running: Self(running), config, changed, unchanged })
    }
}

/// Returns the names of settings in which two layers differ.
fn differing(one: &Layer, other: &Layer) -> Vec<&'static str> {
    let (one, other) = (one.said(), other.said());
    let value = |said: &[(&'static str, String)], name: &str| {
        said.iter().find(|(named, _)| *named == name).map(|(_, value)| value.clone())
    };
    let names = settings().into_iter().map(|setting| setting.name);
    names.filter(|name| value(&one, name) != value(&other, name)).collect()
}

impl Default for Sources {
    fn default() -> Self {
        Self::new()
    }
}

impl Layer {
    /// Parses a configuration file; `source` names the file in an error.
    pub fn from_toml(text: &str, source: &str) -> Result<Self, ConfigError> {
        let syntax =
            |error: toml::de::Error| ConfigError::new(error.to_string()).with_source(source);
        let spans = DeTable::parse(text).map_err(syntax)?;
        let values: toml::Table = toml::from_str(text).map_err(syntax)?;
        let mut layer = Self::default();
        let mut names: Vec<_> = spans.get_ref().keys().collect();
        names.sort_by_key(|name| name.span().start);
        for name in names {
            let line = text[..name.span().start].matches('\n').count() + 1;
            let place = format!("{source}: line {line}");
            let name = name.get_ref().as_ref();
            layer.set_or_propose(name, RawValue::Toml(&values[name]), str::to_owned, &place)?;
        }
        Ok(layer)
    }

    /// Reads the environment: `TRUG_LISTEN` is `listen`, and so on. Ignores other variables.
    pub fn from_env(
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut layer = Self::default();
        for (variable, value) in variables {
            let is_ours = !CLI_ONLY_VARIABLES.contains(&variable.as_str());
            let Some(name) = variable.strip_prefix(ENV_PREFIX).filter(|_| is_ours) else {
                continue;
            };
            let name = name.to_ascii_lowercase();
            layer.set_or_propose(&name, RawValue::Text(&value), variable_of, "environment")?;
        }
        Ok(layer)
    }

    /// Parses assignments such as `drain_seconds=5`.
    pub fn from_assignments<'a>(
        assignments: impl Iterator<Item = &'a str>,
        source: &str,
    ) -> Result<Self, ConfigError> {
        let mut layer = Self::default();
        for assignment in assignments {
            let Some((name, value)) = assignment.split_once('=') else {
                let why = format!("{assignment:?} is not an assignment such as drain_seconds=5");
                return Err(ConfigError::new(why).with_source(source));
            };
            layer.set_or_propose(name.trim(), RawValue::Text(value), str::to_owned, source)?;
        }
        Ok(layer)
    }

    /// Sets a value; `spelled` is the name of the setting as the source spells it.
    fn set_or_propose(
        &mut self,
        name: &str,
        written: RawValue<'_>,
        spelled: fn(&str) -> String,
        place: &str,
    ) -> Result<(), ConfigError> {
        if let Some(set) = self.set(name, written) {
            return set.map_err(|error| error.with_source(place));
        }
        let likeness = |setting: &&str| strsim::jaro_winkler(name, setting);
        let names: Vec<&str> = settings().iter().map(|setting| setting.name).collect();
        let nearest = names.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        let nearest = nearest.filter(|setting| likeness(setting) >= LIKENESS_MIN);
        let meant = nearest.map(|nearest| format!("; did you mean {}?", spelled(nearest)));
        let why = format!("unknown setting {}{}", spelled(name), meant.unwrap_or_default());
        Err(ConfigError::new(why).with_source(place))
    }
}

fn variable_of(setting: &str) -> String {
    format!("{ENV_PREFIX}{}", setting.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Result<Layer, ConfigError> {
        let pairs: Vec<_> =
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Layer::from_env(pairs.into_iter())
    }

    #[test]
    fn unknown_setting_suggests_a_name() {
        let message = |layer: Result<Layer, ConfigError>| layer.unwrap_err().to_string();
        let file = "listen = \"[::]:80\"\n\n# Long.\ndrain_second = 5\n";
        let expected =
            "trug.toml: line 4: unknown setting drain_second; did you mean drain_seconds?";
        assert_eq!(message(Layer::from_toml(file, "trug.toml")), expected);
        let expected = "environment: unknown setting TRUG_LISTN; did you mean TRUG_LISTEN?";
        assert_eq!(message(environment(&[("TRUG_LISTN", "x")])), expected);
        let words = ["listen=[::]:80", "colour=blue"];
        let expected = "--set: unknown setting colour";
        assert_eq!(message(Layer::from_assignments(words.into_iter(), "--set")), expected);
        let error = message(Layer::from_assignments(["listen"].into_iter(), "--set"));
        assert!(error.contains("drain_seconds=5"), "{error}");
        let error = message(Layer::from_toml("listen = ", "trug.toml"));
        assert!(error.starts_with("trug.toml: ") && error.contains("line 1"), "{error}");
        let error = message(Layer::from_toml("[listen]\na = 1", "trug.toml"));
        assert!(error.contains("line 1: listen: ") && error.contains("is not text"), "{error}");
    }

    #[test]
    fn setting_type_error_names_its_source() {
        for (value, is_number) in [("7", true), ("\"7\"", false), ("-7", false), ("7.5", false)] {
            let text = format!("# Large.\nconnections_max = {value}");
            match Layer::from_toml(&text, "trug.toml") {
                Ok(layer) => assert!(is_number && layer.connections_max == Some(7), "{value}"),
                Err(error) => {
                    let start =
                        format!("trug.toml: line 2: connections_max: {value} is not a non-neg");
                    assert!(!is_number && error.to_string().starts_with(&start), "{error}");
                }
            }
        }
    }

    #[test]
    fn config_errors_name_their_source() {
        let file = Layer::from_toml("listen = \"[::]:80\"\nscrub_days = 7", "trug.toml").unwrap();
        let sources = Sources::new()
            .overlay("trug.toml", file)
            .overlay("environment", environment(&[("TRUG_SCRUB_DAYS", "9")]).unwrap());
        let config = sources.config().unwrap();
        assert_eq!(config.scrub.unwrap().period.as_secs(), 9 * 86_400);
        let in_force = sources.effective();
        assert_eq!(in_force.len(), settings().len());
        let lookup = |name: &str| {
            let found = in_force.iter().find(|setting| setting.name == name).unwrap();
            (found.value.clone(), found.source.as_str())
        };
        let value = |text: &str| SettingDefault::Value(text.to_owned());
        assert_eq!(lookup("listen"), (value("\"[::]:80\""), "trug.toml"));
        assert_eq!(lookup("scrub_days"), (value("9"), "environment"));
        assert_eq!(lookup("plan_rates"), (value("true"), "default"));
        assert_eq!(
            lookup("public_url"),
            (SettingDefault::Description("the listen address"), "default")
        );

        let flags = Layer::from_assignments(["scrub_days=4000"].into_iter(), "--set").unwrap();
        let error = sources.overlay("command line", flags).config().unwrap_err().to_string();
        assert_eq!(error, "command line: scrub_days: 4000 is out of range: 0 to 3650");
    }

    #[test]
    fn reload_applies_reloadable_settings_only() {
        let file = |text: &str| {
            Sources::new().overlay("trug.toml", Layer::from_toml(text, "trug.toml").unwrap())
        };
        let running = file("listen = \"[::]:80\"\ndrain_seconds = 5\nplan_rates = false").running();
        let now = file("listen = \"[::]:81\"\ndrain_seconds = 6\nscrub_days = 3");
        let reloaded = running.reload(&now).unwrap();
        assert_eq!(reloaded.changed, ["plan_rates", "drain_seconds"]);
        assert_eq!(reloaded.unchanged, ["listen", "scrub_days"]);
        assert_eq!(reloaded.config.listen.port(), 80);
        assert_eq!(reloaded.config.drain.as_secs(), 6);
        assert!(reloaded.config.plan_rates);
        // Settings that were not changed are reported again, changed ones are not.
        let again = reloaded.running.reload(&now).unwrap();
        assert!(again.changed.is_empty());
        assert_eq!(again.unchanged, ["listen", "scrub_days"]);

        let wrong = file("drain_seconds = 7\nscrub_days = 4000");
        let error = again.running.reload(&wrong).unwrap_err().to_string();
        assert_eq!(error, "trug.toml: scrub_days: 4000 is out of range: 0 to 3650");
    }

    #[test]
    fn tls_cannot_be_toggled_by_reload() {
        let layer = |words: &[&str]| {
            let layer = Layer::from_assignments(words.iter().copied(), "--set").unwrap();
            Sources::new().overlay("command line", layer)
        };
        let with = ["tls_certificate_file=/a", "tls_key_file=/b", "drain_seconds=5"];
        let other = ["tls_certificate_file=/c", "tls_key_file=/d"];
        let (without, with) = (layer(&["drain_seconds=5"]), layer(&with));
        for (was, is) in [(&without, &with), (&with, &without)] {
            let reloaded = was.running().reload(is).unwrap();
            assert!(reloaded.changed.is_empty(), "{:?}", reloaded.changed);
            assert_eq!(reloaded.unchanged, ["tls_certificate_file", "tls_key_file"]);
            assert_eq!(reloaded.config.tls_files, was.config().unwrap().tls_files);
        }
        let reloaded = with.running().reload(&layer(&other)).unwrap();
        assert_eq!(reloaded.changed, ["tls_certificate_file", "tls_key_file", "drain_seconds"]);
    }

    #[test]
    fn shown_config_round_trips() {
        let words = ["trusted_networks=10.0.0.0/8, ::1", "webhook_ca_file=/a \"b\".pem"];
        let layer = Layer::from_assignments(words.into_iter(), "--set").unwrap();
        let layer = layer.over(Layer::defaults());
        let lines = layer.said().into_iter().map(|(name, value)| format!("{name} = {value}\n"));
        assert_eq!(Layer::from_toml(&lines.collect::<String>(), "shown").unwrap(), layer);
    }
}
