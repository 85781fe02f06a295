//! Where a configuration comes from: the command line, the environment, a file. All of it is given as values,
//! so that what follows from it can be tested without touching the process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use super::values::{data_of_store, store_url};

/// The name of the file that is looked for in the current folder.
pub const FILE_NAME: &str = "hookstead.toml";

/// The file with the destinations of dev mode, in the data folder.
pub const DEV_DESTINATIONS_FILE: &str = "dev-destinations.toml";

/// The environment variables that stand for a key of the file, and no others do.
pub const VARIABLES: &[(&str, &str)] = &[
    ("HOOKSTEAD_CONFIG", "the configuration file"),
    ("HOOKSTEAD_INTAKE", "server.intake"),
    ("HOOKSTEAD_ADMIN", "server.admin"),
    ("HOOKSTEAD_STORE", "store.url"),
    ("HOOKSTEAD_LOG", "observability.log_level"),
];

/// A snapshot of the environment. It holds secrets, so `Debug` shows names only.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// A variable, also an empty one.
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable that is set and not empty, as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// What the command line says; it wins over everything else. Texts are checked when the configuration is
/// loaded, so that their mistakes are told with all others.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--config FILE`.
    pub config: Option<PathBuf>,
    /// `--data DIR`: the data folder.
    pub data: Option<PathBuf>,
    /// `--intake ADDRESS`.
    pub intake: Option<String>,
    /// `--admin ADDRESS`.
    pub admin: Option<String>,
    /// `--store URL`.
    pub store: Option<String>,
    /// `--log LEVEL`.
    pub log: Option<String>,
}

/// Everything that a configuration is made from.
#[derive(Clone, Debug, Default)]
pub struct ConfigSource {
    /// The command line.
    pub overrides: Overrides,
    /// The environment.
    pub environment: Environment,
    /// The current folder.
    pub folder: PathBuf,
}

impl ConfigSource {
    /// From this process: its environment and its current folder.
    ///
    /// # Errors
    ///
    /// The current folder is gone or cannot be read.
    pub fn of_process(overrides: Overrides) -> std::io::Result<Self> {
        Ok(Self { overrides, environment: Environment::of_process(), folder: std::env::current_dir()? })
    }

    /// The file to read: that of the command line, else of `HOOKSTEAD_CONFIG`, else `hookstead.toml` in the
    /// current folder if there is one.
    pub fn config_file(&self) -> Option<PathBuf> {
        let named = self.overrides.config.clone().or_else(|| self.environment.path("HOOKSTEAD_CONFIG"));
        named.map(|file| self.folder.join(file)).or_else(|| {
            let found = self.folder.join(FILE_NAME);
            found.exists().then_some(found)
        })
    }

    /// The file with the destinations of dev mode, whether it is there or not: in the data folder, which is where the
    /// store is if another one is named.
    pub(super) fn dev_file(&self) -> Option<PathBuf> {
        let data = self.data_folder(None)?;
        let named = self.overrides.store.as_deref().map(str::to_owned);
        let named = named.or_else(|| self.environment.raw("HOOKSTEAD_STORE")?.to_str().map(str::to_owned));
        // A name that is wrong is told with everything else that is wrong.
        let url = named.and_then(|url| store_url(&url, &data).ok());
        let beside = url.and_then(|url| data_of_store(&url, self));
        Some(beside.unwrap_or(data).join(DEV_DESTINATIONS_FILE))
    }

    /// The data folder: `--data`; else `.hookstead` beside a `hookstead.toml` of the current folder; else
    /// `$STATE_DIRECTORY` (the first of several); else `$XDG_DATA_HOME/hookstead`; else
    /// `~/.local/share/hookstead`. `None` where not even a home is known.
    pub fn data_folder(&self, config_file: Option<&Path>) -> Option<PathBuf> {
        let variable = |name| self.environment.path(name);
        let absolute = |path: &PathBuf| path.is_absolute();
        if let Some(data) = &self.overrides.data {
            return Some(self.folder.join(data));
        }
        if config_file == Some(&self.folder.join(FILE_NAME)) {
            return Some(self.folder.join(".hookstead"));
        }
        if let Some(state) = variable("STATE_DIRECTORY") {
            let first = state.as_os_str().as_encoded_bytes().split(|byte| *byte == b':').next();
            return first.and_then(|first| std::str::from_utf8(first).ok()).map(PathBuf::from);
        }
        // The XDG specification has relative paths ignored.
        let shared = variable("XDG_DATA_HOME").filter(absolute);
        let home = variable("HOME").filter(absolute).map(|home| home.join(".local/share"));
        shared.or(home).map(|folder| folder.join("hookstead"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(variables: &[(&str, &str)]) -> ConfigSource {
        ConfigSource {
            overrides: Overrides::default(),
            environment: variables.iter().copied().collect(),
            folder: PathBuf::from("/srv/shop"),
        }
    }

    fn data(variables: &[(&str, &str)], config_file: Option<&str>) -> Option<String> {
        let folder = source(variables).data_folder(config_file.map(Path::new));
        folder.map(|folder| folder.display().to_string())
    }

    #[test]
    fn the_data_folder_follows_the_table() {
        let everything =
            [("STATE_DIRECTORY", "/var/lib/hs:/other"), ("XDG_DATA_HOME", "/x"), ("HOME", "/home/a")];
        let check =
            |variables, file, expected: &str| assert_eq!(data(variables, file).as_deref(), Some(expected));
        check(&everything, Some("/srv/shop/hookstead.toml"), "/srv/shop/.hookstead");
        check(&everything, Some("/etc/hookstead.toml"), "/var/lib/hs");
        check(&everything, None, "/var/lib/hs");
        check(&everything[1..], None, "/x/hookstead");
        check(&everything[2..], None, "/home/a/.local/share/hookstead");
        check(&[("XDG_DATA_HOME", "relative"), ("HOME", "/home/a")], None, "/home/a/.local/share/hookstead");
        check(&[("XDG_DATA_HOME", ""), ("HOME", "/home/a")], None, "/home/a/.local/share/hookstead");
        assert_eq!(data(&[], None), None);
        assert_eq!(data(&[("HOME", "not/absolute")], None), None);
    }

    #[test]
    fn the_command_line_wins() {
        let mut source = source(&[("HOOKSTEAD_CONFIG", "env.toml"), ("HOME", "/home/a")]);
        assert_eq!(source.config_file(), Some(PathBuf::from("/srv/shop/env.toml")));
        source.overrides.config = Some("flag.toml".into());
        source.overrides.data = Some("data".into());
        assert_eq!(source.config_file(), Some(PathBuf::from("/srv/shop/flag.toml")));
        assert_eq!(source.data_folder(None), Some(PathBuf::from("/srv/shop/data")));
    }
}
