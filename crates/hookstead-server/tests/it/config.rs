//! The configuration: what is accepted, and what is said when it is not. Each `config_errors/NAME.toml` has
//! its expected text beside it in `NAME.txt`; with `UPDATE_EXPECTED=1` the texts are written anew.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookstead_server::Config;
use hookstead_server::config::{
    ConfigErrors, ConfigSource, KEYS, Mode, Origin, Overrides, Place, default_text,
};
use tempfile::TempDir;

const VARIABLES: [(&str, &str); 10] = [
    ("HOME", "/home/a"),
    ("STRIPE", "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw"),
    ("GITHUB", "canary-8d2f1e0c-secret-of-the-tests"),
    ("LINEAR", "lin_wh_canary-8d2f1e0c-secret"),
    ("EMPTY", ""),
    ("BLANK", "canary-8d2f1e0c-secret-of-the-tests\n"),
    ("API_KEY", "lin_api_canary-8d2f1e0c"),
    ("SHORT", "short"),
    ("STANDARD", "whsec_aG9va3N0ZWFkLWEta2V5LW9mLTMyLWJ5dGVzLi4u"),
    ("WITH_QUOTES", "\"canary-8d2f1e0c\""),
];

fn source(folder: &Path, file: &str) -> ConfigSource {
    ConfigSource {
        overrides: Overrides { config: Some(file.into()), ..Overrides::default() },
        environment: VARIABLES.into_iter().collect(),
        folder: folder.to_path_buf(),
    }
}

#[test]
fn every_mistake_is_told_with_its_place_and_its_fix() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/config_errors");
    let mut cases = 0;
    let mut different = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        cases += 1;
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = Config::load(&source(&folder, name)).unwrap_err().to_string();
        for secret in ["canary", "secretitself", "secretinthefile"] {
            assert!(!text.contains(secret), "a secret is shown:\n{text}");
        }
        let expected_path = path.with_extension("txt");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            fs::write(&expected_path, &text).unwrap();
        }
        if fs::read_to_string(&expected_path).unwrap_or_default() != text {
            different.push(format!("--- {name}\n{text}"));
        }
    }
    assert!(different.is_empty(), "not as expected:\n{}", different.join("\n"));
    assert_eq!(cases, 12);
}

fn load(text: &str) -> Result<Config, ConfigErrors> {
    let folder = tempfile::tempdir().unwrap();
    load_in(&folder, text, |_| {})
}

fn load_in(
    folder: &TempDir,
    text: &str,
    change: impl FnOnce(&mut ConfigSource),
) -> Result<Config, ConfigErrors> {
    fs::write(folder.path().join("test.toml"), text).unwrap();
    let mut source = source(folder.path(), "test.toml");
    change(&mut source);
    Config::load(&source)
}

#[test]
fn the_first_file_checks_clean_with_and_without_its_hashes() {
    let config = load(&default_text()).unwrap();
    assert_eq!(config.mode, Mode::Configured);
    assert!(config.sources.is_empty());
    // Each key that has a default, written out, changes nothing.
    let mut written = String::new();
    let mut section = "";
    for key in KEYS.iter().filter(|key| key.has_default && !key.section.contains('*')) {
        if key.section != section {
            section = key.section;
            written += &format!("[{section}]\n");
        }
        written += &format!("{} = {}\n", key.name, key.value);
    }
    let values =
        |config: &Config| config.show().into_iter().map(|shown| (shown.key, shown.value)).collect::<Vec<_>>();
    let explicit = load(&written).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(values(&explicit), values(&config));
    let explicit_origin = explicit.origin("server.intake");
    assert_eq!((explicit_origin, config.origin("server.intake")), (Origin::File(2), Origin::Default));
}

#[test]
fn every_key_is_shown() {
    let shown: Vec<String> = load("").unwrap().show().into_iter().map(|shown| shown.key).collect();
    for key in KEYS.iter().filter(|key| !key.section.contains('*')) {
        assert!(shown.contains(&format!("{}.{}", key.section, key.name)), "{}.{}", key.section, key.name);
    }
}

#[test]
fn environment_and_command_line_win_in_that_order() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[server]\nintake = \"127.0.0.1:1\"\nadmin = \"127.0.0.1:2\"\n";
    let config = load_in(&folder, text, |source| {
        let more = [
            ("HOOKSTEAD_INTAKE", "127.0.0.1:3"),
            ("HOOKSTEAD_ADMIN", "127.0.0.1:4"),
            ("HOOKSTEAD_STORE", "memory:"),
            ("HOOKSTEAD_LOG", "debug"),
            ("HOME", "/home/a"),
        ];
        source.environment = more.into_iter().collect();
        source.overrides.admin = Some("127.0.0.1:5".to_owned());
    })
    .unwrap();
    assert_eq!((config.server.intake.port(), config.server.admin.port()), (3, 5));
    assert_eq!((config.store.url.as_str(), config.observability.log_level.as_str()), ("memory:", "debug"));
    assert_eq!(config.origin("server.intake"), Origin::Environment("HOOKSTEAD_INTAKE"));
    assert_eq!(config.origin("server.admin"), Origin::Flag("--admin"));

    let errors = load_in(&folder, text, |source| {
        source.environment = [("HOOKSTEAD_INTAKE", "nowhere"), ("HOME", "/home/a")].into_iter().collect();
        source.overrides.admin = Some("nowhere".to_owned());
    })
    .unwrap_err();
    let places: Vec<_> = errors.problems().iter().map(|problem| problem.place.clone()).collect();
    assert_eq!(
        places,
        [Place::Environment("HOOKSTEAD_INTAKE".to_owned()), Place::Flag("--admin".to_owned())]
    );
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let errors = Config::load(&source(folder.path(), "absent.toml")).unwrap_err().to_string();
    assert!(errors.contains("absent.toml") && errors.contains("hookstead config init"), "{errors}");
}

#[test]
fn a_good_source_is_read_whole() {
    let text = "[server]\npublic_url = \"https://hooks.example.com/\"\n\
        [sources.shop]\nprovider = \"stripe\"\nsecrets = [{ env = \"STRIPE\" }, { env = \"GITHUB\" }]\ntolerance = \"10m\"\n\
        on_conflict = \"hold\"\nbody = \"64 KiB\"\nsuccess_status = 200\n\
        [sources.partner]\nscheme = { hmac = \"sha256\", header = \"x-sig\", prefix = \"sha256=\", signed = \"{timestamp}.{body}\", timestamp = \"x-ts\" }\n\
        secret = { env = \"GITHUB\" }\nidentity = \"/id\"\ntype = \"/event/name\"\n\
        [sources.github]\nsecret = { env = \"GITHUB\" }\n\
        [sources.unsigned]\nprovider = \"none\"\nidentity = \"body\"\n\
        [sources.twilio]\nsecret = { env = \"GITHUB\" }\n";
    let config = load(text).unwrap_or_else(|errors| panic!("{errors}"));
    let names: Vec<&str> = config.sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["github", "partner", "shop", "twilio", "unsigned"]);
    let shop = &config.sources[2];
    assert_eq!((shop.tolerance_s, shop.body_bytes_max, shop.success_status), (Some(600), 65_536, Some(200)));
    assert_eq!(shop.secrets.len(), 2);
    assert_eq!(config.sources[0].body_bytes_max, 25 * 1024 * 1024, "GitHub's own limit");
    assert!(config.sources[1].event_type.is_some() && config.sources[1].provider.has_timestamp());
    assert_eq!(config.server.public_url.as_deref(), Some("https://hooks.example.com"));
    assert_eq!(config.server.drain, Duration::from_secs(20));

    let shown = config.show();
    let value = |key: &str| {
        let shown = shown.iter().find(|shown| shown.key == key).unwrap_or_else(|| panic!("no {key}"));
        (shown.value.clone(), shown.origin.clone())
    };
    let file = |text: &str, line| (text.to_owned(), Origin::File(line));
    assert_eq!(value("sources.shop.provider"), file("\"stripe\"", 4));
    assert_eq!(value("sources.shop.secrets"), file("[{ env = \"STRIPE\" }, { env = \"GITHUB\" }]", 5));
    assert_eq!(value("sources.shop.on_conflict"), file("\"hold\"", 7));
    let by_default = |text: &str| (text.to_owned(), Origin::Default);
    for (key, expected) in [
        ("sources.shop.body_reuse", "\"off\""),
        ("sources.partner.body_reuse", "\"off\""),
        ("sources.github.body_reuse", "\"flag\""),
        ("sources.twilio.body_reuse", "\"off\""),
        ("sources.unsigned.body_reuse", "\"off\""),
    ] {
        assert_eq!(value(key), by_default(expected), "{key}");
    }
    assert_eq!(value("sources.partner.identity"), file("\"{json:/id}\"", 13));
    assert_eq!(value("sources.github.provider"), ("\"github\"".to_owned(), Origin::Default));
}

#[test]
fn secrets_are_shown_nowhere() {
    let config = load("[sources.github]\nsecret = { env = \"GITHUB\" }\n").unwrap();
    assert_eq!(config.sources[0].secrets[0].expose(), b"canary-8d2f1e0c-secret-of-the-tests");
    let everything = format!("{config:?} {:?}", config.show());
    assert!(!everything.contains("canary"), "{everything}");
    assert!(everything.contains("env = \\\"GITHUB\\\""), "the place is shown: {everything}");
}

#[test]
fn secret_files_lose_one_line_end_and_must_be_private() {
    let folder = tempfile::tempdir().unwrap();
    let secret = |content: &str, mode: u32| {
        let path = folder.path().join("secret");
        // The one before may be there to be read only.
        if path.exists() {
            fs::remove_file(&path).unwrap();
        }
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        load_in(&folder, "[sources.github]\nsecret = { file = \"secret\" }\n", |_| {})
            .map(|config| String::from_utf8(config.sources[0].secrets[0].expose().to_vec()).unwrap())
            .map_err(|errors| errors.to_string())
    };
    for content in ["secret-of-the-tests", "secret-of-the-tests\n", "secret-of-the-tests\r\n"] {
        assert_eq!(secret(content, 0o600).as_deref(), Ok("secret-of-the-tests"), "{content:?}");
    }
    assert!(secret("secret-of-the-tests\n", 0o440).is_ok(), "a group may read it");
    let refused = |content: &str, mode: u32, what: &str| {
        let error = secret(content, mode).unwrap_err();
        assert!(error.contains(what), "{content:?} {mode:o}: {error}");
    };
    refused("secret-of-the-tests\n\n", 0o600, "line feed");
    refused("secret-of-the-tests ", 0o600, "ends with white space");
    refused(" secret-of-the-tests", 0o600, "starts with white space");
    refused("", 0o600, "is empty");
    refused("\n", 0o600, "is empty");
    refused("secret-of-the-tests", 0o644, "chmod o= ");
    refused(&"x".repeat(10_000), 0o600, "more than");
}

#[test]
fn systemd_credentials_are_read_from_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hooks");
    fs::write(&path, "secret-of-the-tests\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let text = "[sources.github]\nsecret = { credential = \"hooks\" }\n";
    let config = load_in(&folder, text, |source| {
        let more = [("CREDENTIALS_DIRECTORY", folder.path().to_str().unwrap()), ("HOME", "/home/a")];
        source.environment = more.into_iter().collect();
    });
    assert_eq!(config.unwrap().sources[0].secrets[0].expose(), b"secret-of-the-tests");
}

#[test]
fn a_database_takes_the_data_folder_along() {
    let data = |text: &str| load(text).unwrap().data;
    assert_eq!(data("[store]\nurl = \"sqlite:/var/db/inbox.db\"\n"), Path::new("/var/db"));
    assert_eq!(data("[store]\nurl = \"sqlite:inbox.db\"\n"), Path::new("/home/a/.local/share/hookstead"));
    assert_eq!(data(""), Path::new("/home/a/.local/share/hookstead"));
}
