//! The providers' own SDKs sign and send to the running binary.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::Project;

const STRIPE_SECRET: &str = "whsec_5f1c6f0a8e0b4c6f9d3e2a1b7c8d9e0f";

/// Base64 after the prefix, as svix wants it.
const SVIX_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn stripe() {
    check("stripe", STRIPE_SECRET);
}

#[test]
fn svix() {
    check("svix", SVIX_SECRET);
}

/// Sends one event as the SDK signs it, again, and with each byte changed in turn.
fn check(provider: &str, secret: &str) {
    let project = Project::new().source(provider, provider, secret);
    let server = project.serve();
    let sent = run_sdk(provider, secret, &format!("http://{}/in/{provider}", server.intake()));

    assert_eq!(sent["first"], 202, "{sent}");
    assert_eq!(sent["again"], 200, "{sent}");
    let flipped = sent["flipped"].as_array().expect("a list of statuses");
    assert!(!flipped.is_empty() && flipped.iter().all(|status| *status == 401), "{sent}");

    let body = sent["body"].as_str().expect("the body");
    assert_eq!(server.admin().body(provider, text(&sent, "id")).as_deref(), Ok(body.as_bytes()));
    assert_eq!(server.admin().events().len(), 1);
    check_show(&project, provider, &sent);
}

/// `events show` finds the event by the provider's own id, for people and for programs.
fn check_show(project: &Project, provider: &str, sent: &Value) {
    let name = format!("{provider}:{}", text(sent, "id"));
    let shown = project.run(&["events", "show", &name, "--json"]);
    assert_eq!(shown.exit_code, Some(0), "{shown:?}");
    let event: Value =
        serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("{error}: {shown:?}"));
    assert_eq!(event["source"], provider);
    assert_eq!(event["provider_event_id"], sent["id"]);
    assert_eq!(event["type"], sent["type"]);

    let shown = project.run(&["events", "show", &name]);
    assert_eq!(shown.exit_code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains(text(sent, "id")), "{shown:?}");
}

fn text<'a>(sent: &'a Value, key: &str) -> &'a str {
    sent[key].as_str().unwrap_or_else(|| panic!("no text `{key}` in {sent}"))
}

fn run_sdk(provider: &str, secret: &str, url: &str) -> Value {
    let packages = packages();
    let mut node = Command::new("node");
    node.arg(folder().join(format!("{provider}.mjs")))
        .args([url, secret])
        .env("HOOKSTEAD_SENDERS", &packages);
    let output = node.output().expect("node starts; if it is missing, run `cargo xtask setup`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/senders")
}

fn packages() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/senders");
    let packages = std::env::var_os("HOOKSTEAD_SENDERS").map_or_else(default, PathBuf::from);
    assert!(
        packages.join("node_modules").is_dir(),
        "no SDKs in {}: run `cargo xtask setup`",
        packages.display()
    );
    packages
}
