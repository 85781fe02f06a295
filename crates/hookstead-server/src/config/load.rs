//! Puts a configuration together from file, environment and command line, and gathers all that is wrong.
//!
//! Knows which key goes where. What a value may be is `values`', how TOML is read is `reader`'s.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeTable;

use super::destinations;
use super::environment::ConfigSource;
use super::keys::{SECTIONS, names};
use super::problem::{ConfigErrors, ConfigProblem, Place, did_you_mean};
use super::reader::{Findings, Section};
use super::secret::{Lookup, suspects, suspects_of_text};
use super::settings::{Config, LimitsConfig, Mode, ObservabilityConfig, Origin, ServerConfig, StoreConfig};
use super::sources::{self, SourceConfig, Surroundings};
use super::values::{address, data_of_store, host_name, proxy_header, public_url, store_url};
use crate::limits;
use crate::telemetry::LogFormat;

impl Config {
    /// Reads the configuration. Nothing is written, opened or bound.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, at once, with place and fix.
    pub fn load(source: &ConfigSource) -> Result<Self, ConfigErrors> {
        let file = source.config_file().or_else(|| source.dev_file().filter(|file| file.exists()));
        match file.as_deref().map(read_file).transpose() {
            Ok(text) => Self::load_text(source, &text.unwrap_or_default()),
            Err(what) => {
                let shown = file.as_ref().map(|file| shown(file, source));
                Err(ConfigErrors::new(shown, vec![unreadable(&what)]))
            }
        }
    }

    /// As [`Config::load`], with this text in the place of the file's: whether a change of it would be right.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn load_text(source: &ConfigSource, text: &str) -> Result<Self, ConfigErrors> {
        let file = source.config_file();
        let mode = if file.is_some() { Mode::Configured } else { Mode::Dev };
        let read = file.clone().or_else(|| source.dev_file());
        let shown = read.as_ref().filter(|_| file.is_some() || !text.is_empty());
        let shown = shown.map(|read| self::shown(read, source));
        let (document, faults) = DeTable::parse_recoverable(text);
        if !faults.is_empty() {
            let findings = Findings::new(text, suspects_of_text(text));
            for fault in &faults {
                let what = format!("not TOML: {}", fault.message());
                findings.at(&fault.span().unwrap_or_default(), "", what, "");
            }
            return Err(ConfigErrors::new(shown, findings.into_problems()));
        }
        let findings = Findings::new(text, suspects(document.get_ref()));
        let root = Section::open("", document.span(), document.get_ref(), &findings);
        let folder = read.as_deref().and_then(Path::parent).unwrap_or(&source.folder);
        let loading = Loading { source, file: file.as_deref(), folder, mode, origins: BTreeMap::new() };
        let loaded = loading.load(&root);
        let problems = findings.into_problems();
        match loaded {
            Some(config) if problems.is_empty() => Ok(config),
            _ => Err(ConfigErrors::new(shown, problems)),
        }
    }
}

/// The file's name as a person would write it: relative where it lies in the current folder.
fn shown(file: &Path, source: &ConfigSource) -> PathBuf {
    file.strip_prefix(&source.folder).unwrap_or(file).to_path_buf()
}

fn read_file(file: &Path) -> Result<String, String> {
    let read = || -> std::io::Result<String> {
        let mut text = String::new();
        fs::File::open(file)?.take(limits::CONFIG_BYTES_MAX + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    match read() {
        Ok(text) if text.len() as u64 > limits::CONFIG_BYTES_MAX => Err("is larger than 1 MiB".to_owned()),
        Ok(text) => Ok(text),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

fn unreadable(what: &str) -> ConfigProblem {
    let fix = "make one with `hookstead config init`, or start without --config".to_owned();
    ConfigProblem { place: Place::Nowhere, key: String::new(), what: format!("the file {what}"), fix }
}

/// A configuration on its way.
struct Loading<'a> {
    source: &'a ConfigSource,
    file: Option<&'a Path>,
    /// Relative paths in the file count from here.
    folder: &'a Path,
    mode: Mode,
    origins: BTreeMap<String, Origin>,
}

/// A key that the environment and the command line can set as well.
struct Overridable<'a> {
    key: &'static str,
    flag: (&'static str, Option<&'a str>),
    variable: &'static str,
}

impl Loading<'_> {
    fn load(mut self, root: &Section<'_>) -> Option<Config> {
        check_sections(root, self.mode);
        let server = self.server(root);
        let limits = self.limits(root);
        let observability = self.observability(root);
        let data = self.data(root);
        let store = self.store(root, data.as_deref());
        let folder = self.folder;
        let lookup = || Lookup { environment: &self.source.environment, folder };
        let surroundings = Surroundings {
            lookup: lookup(),
            body_bytes_max: limits.body,
            public_url: server.public_url.as_deref(),
        };
        let tables = root.section("sources");
        let sources = tables.as_ref().map(|tables| sources::read(tables, &surroundings)).unwrap_or_default();
        self.note_origins(tables.as_ref());
        let known: Vec<&str> = match self.mode {
            Mode::Configured => tables.iter().flat_map(Section::entries).map(|(name, _, _)| name).collect(),
            Mode::Dev => crate::dev::source_names().collect(),
        };
        let tables = root.section("destinations");
        let surroundings = destinations::Surroundings { lookup: lookup(), sources: &known, mode: self.mode };
        let destinations = tables.as_ref().map(|tables| destinations::read(tables, &surroundings));
        self.note_origins(tables.as_ref());
        self.check_together(root, &server, &limits, &sources);
        let store = store?;
        Some(Config {
            file: self.file.map(Path::to_path_buf),
            mode: self.mode,
            data: data_of_store(&store.url, self.source).or(data)?,
            server,
            store,
            limits,
            observability,
            sources,
            destinations: destinations.unwrap_or_default(),
            read_from: self.source.clone(),
            origins: self.origins,
        })
    }

    fn server(&mut self, root: &Section<'_>) -> ServerConfig {
        let overrides = &self.source.overrides;
        let intake = Overridable {
            key: "server.intake",
            flag: ("--intake", overrides.intake.as_deref()),
            variable: "HOOKSTEAD_INTAKE",
        };
        let admin = Overridable {
            key: "server.admin",
            flag: ("--admin", overrides.admin.as_deref()),
            variable: "HOOKSTEAD_ADMIN",
        };
        let section = self.section(root, "server");
        let section = section.as_ref();
        let minute = Duration::from_secs(60);
        ServerConfig {
            intake: self
                .overridable(root, section, &intake, address)
                .unwrap_or(SocketAddr::from(([127, 0, 0, 1], 4665))),
            admin: self
                .overridable(root, section, &admin, address)
                .unwrap_or(SocketAddr::from(([127, 0, 0, 1], 4666))),
            public_url: section
                .and_then(|section| section.parsed("public_url", public_url))
                .and_then(|at| at.value),
            intake_hosts: section
                .and_then(|section| section.parsed_list("intake_hosts", host_name))
                .unwrap_or_default(),
            trusted_proxies: section
                .and_then(|section| section.parsed_list("trusted_proxies", str::parse))
                .unwrap_or_default(),
            proxy_header: section
                .and_then(|section| section.parsed("proxy_header", proxy_header))
                .map_or_else(Default::default, |at| at.value),
            admin_hosts: section
                .and_then(|section| section.texts("admin_hosts"))
                .map_or_else(Vec::new, |hosts| {
                    hosts.into_iter().map(|host| host.value.to_ascii_lowercase()).collect()
                }),
            drain: section
                .and_then(|section| section.duration("drain", Duration::ZERO..=10 * minute))
                .map_or(limits::DRAIN_TIME, |at| at.value),
            failstop_linger: section
                .and_then(|section| section.duration("failstop_linger", Duration::ZERO..=10 * minute))
                .map_or(limits::FAILSTOP_LINGER, |at| at.value),
        }
    }

    fn limits(&mut self, root: &Section<'_>) -> LimitsConfig {
        let mut limits = LimitsConfig::default();
        let Some(section) = self.section(root, "limits") else { return limits };
        let hour = Duration::from_secs(3600);
        let shortest = Duration::from_millis(50);
        for (name, value) in [
            ("header_time", &mut limits.header_time),
            ("body_time", &mut limits.body_time),
            ("idle_time", &mut limits.idle_time),
            ("write_time", &mut limits.write_time),
        ] {
            if let Some(at) = section.duration(name, shortest..=hour) {
                *value = at.value;
            }
        }
        for (name, value) in [("body", &mut limits.body), ("body_memory", &mut limits.body_memory)] {
            if let Some(at) = section.size(name, 1..=limits::BODY_BYTES_CEILING) {
                *value = at.value;
            }
        }
        for (name, value) in [
            ("connections", &mut limits.connections),
            ("connections_per_address", &mut limits.connections_per_address),
        ] {
            if let Some(at) = section.integer(name, 1..=1_000_000) {
                *value = usize::try_from(at.value).unwrap_or(usize::MAX);
            }
        }
        limits
    }

    fn observability(&mut self, root: &Section<'_>) -> ObservabilityConfig {
        let level = Overridable {
            key: "observability.log_level",
            flag: ("--log", self.source.overrides.log.as_deref()),
            variable: "HOOKSTEAD_LOG",
        };
        let section = self.section(root, "observability");
        let parse = |text: &str| crate::telemetry::check_level(text).map(|()| text.to_owned());
        ObservabilityConfig {
            log_level: self
                .overridable(root, section.as_ref(), &level, parse)
                .unwrap_or_else(|| "info".to_owned()),
            log_format: section
                .and_then(|section| section.parsed("log_format", str::parse))
                .map_or(LogFormat::Auto, |at| at.value),
        }
    }

    fn data(&mut self, root: &Section<'_>) -> Option<PathBuf> {
        let data = self.source.data_folder(self.file);
        if data.is_none() {
            let fix = "set HOME or XDG_DATA_HOME, or start with --data DIR";
            root.findings.push(Place::Nowhere, "", "there is no place for the data folder", fix);
        }
        data
    }

    fn store(&mut self, root: &Section<'_>, data: Option<&Path>) -> Option<StoreConfig> {
        let url = Overridable {
            key: "store.url",
            flag: ("--store", self.source.overrides.store.as_deref()),
            variable: "HOOKSTEAD_STORE",
        };
        let section = self.section(root, "store");
        let data = data?;
        let parse = |text: &str| store_url(text, data);
        let url = self.overridable(root, section.as_ref(), &url, parse);
        let min_free = section
            .as_ref()
            .and_then(|section| section.size("min_free", 0..=1 << 50))
            .map_or(1 << 30, |at| at.value);
        let upgrade_copy = section.and_then(|section| section.boolean("upgrade_copy")).unwrap_or(true);
        let url = url.unwrap_or_else(|| format!("sqlite:{}", data.join("hookstead.db").display()));
        Some(StoreConfig { url, min_free, upgrade_copy })
    }

    /// A table with its keys checked and the origin of its values noted.
    fn section<'d>(&mut self, root: &Section<'d>, name: &str) -> Option<Section<'d>> {
        let section = root.section(name)?;
        section.check_keys(&names(name));
        for (key, span, _) in section.entries() {
            self.origins.insert(section.key(key), Origin::File(section.findings.line(&span)));
        }
        Some(section)
    }

    /// Notes where the values of the sources, or of the destinations, stand.
    fn note_origins(&mut self, tables: Option<&Section<'_>>) {
        let Some(tables) = tables else { return };
        for (name, _, _) in tables.entries().filter(|(_, _, value)| value.get_ref().is_table()) {
            let Some(table) = tables.section(name) else { continue };
            for (key, span, _) in table.entries() {
                self.origins.insert(table.key(key), Origin::File(tables.findings.line(&span)));
            }
        }
    }

    /// The value of a key: of the command line, else of the environment, else of the file. All that are
    /// given are checked, so that a mistake does not come up later, when the winner is taken away.
    fn overridable<T>(
        &mut self,
        root: &Section<'_>,
        section: Option<&Section<'_>>,
        key: &Overridable<'_>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let name = key.key.rsplit('.').next().unwrap_or(key.key);
        let mut value = section.and_then(|section| section.parsed(name, &parse)).map(|at| at.value);
        let refuse = |place, text: &str, fault: &str| {
            root.findings.push(place, key.key, format!("`{text}` {fault}"), "");
        };
        if let Some(text) = self.source.environment.raw(key.variable) {
            let text = text.to_string_lossy();
            match parse(&text) {
                Ok(found) => {
                    self.origins.insert(key.key.to_owned(), Origin::Environment(key.variable));
                    value = Some(found);
                }
                Err(fault) => refuse(Place::Environment(key.variable.to_owned()), &text, &fault),
            }
        }
        let (flag, text) = key.flag;
        match text.map(|text| (text, parse(text))) {
            Some((_, Ok(found))) => {
                self.origins.insert(key.key.to_owned(), Origin::Flag(flag));
                value = Some(found);
            }
            Some((text, Err(fault))) => refuse(Place::Flag(flag.to_owned()), text, &fault),
            None => {}
        }
        value
    }

    /// What only shows when all tables come together.
    fn check_together(
        &self,
        root: &Section<'_>,
        server: &ServerConfig,
        limits: &LimitsConfig,
        sources: &[SourceConfig],
    ) {
        let refuse = |key: &str, what: String, fix: &str| {
            let place = self.place_of(root, key);
            root.findings.push(place, key, what, fix);
        };
        if server.intake == server.admin && server.intake.port() != 0 {
            let what = format!("intake and admin have one address, {}", server.admin);
            refuse("server.admin", what, "give each a port of its own; only the intake may be exposed");
        }
        if self.file.is_none() {
            for (key, address) in [("server.intake", server.intake), ("server.admin", server.admin)] {
                if !address.ip().is_loopback() {
                    let what =
                        format!("{address} is open to the network, and no configuration names a source");
                    refuse(key, what, "write one with `hookstead config init`, or listen on 127.0.0.1");
                }
            }
        }
        let largest = sources.iter().map(|source| source.body_bytes_max).max().unwrap_or(limits.body);
        let largest = largest.max(limits.body);
        if limits.body_memory < largest {
            let what = format!(
                "{} of memory for bodies cannot hold one body of {}",
                super::format_size(limits.body_memory),
                super::format_size(largest)
            );
            refuse("limits.body_memory", what, "raise it, or lower the body limit");
        }
    }

    /// Where the value of a key stands.
    fn place_of(&self, root: &Section<'_>, key: &str) -> Place {
        match self.origins.get(key) {
            Some(Origin::Environment(name)) => Place::Environment((*name).to_owned()),
            Some(Origin::Flag(name)) => Place::Flag((*name).to_owned()),
            Some(Origin::File(_)) => {
                let (section, name) = key.split_once('.').unwrap_or((key, ""));
                let value =
                    root.section(section).and_then(|section| section.value(name).map(|value| value.span()));
                value.map_or(Place::Nowhere, |span| root.findings.place(&span))
            }
            _ => Place::Nowhere,
        }
    }
}

fn check_sections(root: &Section<'_>, mode: Mode) {
    for (name, span, _) in root.entries() {
        if mode == Mode::Dev && name != "destinations" {
            let fix = "keep it in a hookstead.toml: hookstead config init";
            root.findings.at(
                &span,
                name,
                "this file holds the destinations of dev mode, and nothing else",
                fix,
            );
            continue;
        }
        if SECTIONS.contains(&name) {
            continue;
        }
        let version = env!("CARGO_PKG_VERSION");
        let what = match did_you_mean(name, SECTIONS.iter().copied()) {
            Some(close) => format!("unknown table; did you mean [{close}]?"),
            None => format!("unknown table: hookstead {version} has no `{name}`"),
        };
        root.findings.at(&span, name, what, format!("known tables: {}", SECTIONS.join(", ")));
    }
}
