//! Destinations as they are configured: what is read, what is shown, and the secrets that are made for them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use hookstead_server::destination_secrets::{DESTINATION_SECRETS_FILE, DestinationSecrets};

use crate::harness::config;

const DESTINATIONS: &str = r#"
[destinations.app]
push = "http://localhost:3000/hooks?token=canary"
allow_private = true
sources = ["conf"]
types = ["invoice.*", "*.failed"]
equals = { "/live" = true, "/n" = 5 }
retry = ["0s", "5s", "5m"]
rate = "50/s"
[destinations.worker]
pull = true
lease = "90s"
max_attempts = 20
[destinations.program]
exec = ["/bin/cat", "-"]
timeout = "1500ms"
environment = { MODE = "canary" }
"#;

#[test]
fn destinations_are_read_and_shown_whole() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), DESTINATIONS);
    let shown: Vec<_> = config
        .show()
        .into_iter()
        .filter_map(|shown| Some(format!("{} = {}", shown.key.strip_prefix("destinations.")?, shown.value)))
        .collect();
    let expected = r#"app.push = "http://localhost:3000/hooks"
app.timeout = "30s"
app.allow_private = true
app.on_410 = "hold"
app.secret = made and kept by the server
app.sources = ["conf"]
app.types = ["invoice.*", "*.failed"]
app.equals = { "/live" = true, "/n" = 5 }
app.retry = ["0s", "5s", "5m"]
app.max_attempts = 3
app.max_age = "7d"
app.concurrency = 16
app.rate = "50/s"
app.lease = "1m"
program.exec = ["/bin/cat", "-"]
program.timeout = "1500ms"
program.environment = { MODE = .. }
program.retry = "standard"
program.max_attempts = 10
program.max_age = "7d"
program.concurrency = 16
program.lease = "31500ms"
worker.pull = true
worker.retry = "standard"
worker.max_attempts = 20
worker.max_age = "7d"
worker.lease = "90s""#;
    assert_eq!(shown.join("\n"), expected);
}

#[test]
fn secrets_are_made_once_and_kept_for_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), DESTINATIONS);
    let made = DestinationSecrets::open(&config.data, &config.destinations).unwrap();
    let secret = made.get("app").expect("a push destination is signed").clone();
    assert!(secret.expose().starts_with("whsec_"));
    assert!(made.get("worker").is_none() && made.get("program").is_none());
    let file = config.data.join(DESTINATION_SECRETS_FILE);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let written = fs::read_to_string(&file).unwrap();
    // Also when the destination was away for a while.
    for destinations in [&config.destinations[..0], &config.destinations[..]] {
        let again = DestinationSecrets::open(&config.data, destinations).unwrap();
        assert_eq!(again.get("app"), Some(&secret));
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let exposed = DestinationSecrets::open(&config.data, &config.destinations).unwrap_err();
    assert!(exposed.to_string().contains("chmod 600"), "{exposed}");
}
