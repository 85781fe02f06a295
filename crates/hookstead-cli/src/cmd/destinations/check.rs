//! Whether anything is there at a new destination: one connection to a push URL, one look for a program. Nothing is sent
//! and nothing is run.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use hookstead::DestinationKind;
use hookstead::sink::push::{PushHost, PushRule, PushSink, PushUrl, SigningSecret, SystemNetwork};
use hookstead_server::config::DestinationConfig;
use serde::Serialize;

use crate::cmd::runtime;
use crate::output::printable;

/// What was found.
#[derive(Serialize)]
pub(super) struct Check {
    /// Whether a delivery could begin now.
    pub(super) ok: bool,
    /// What was looked at.
    pub(super) looked_at: String,
    /// What was found there.
    pub(super) found: String,
    /// What to do about it, if it is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

/// Looks; `None` where there is nothing to look at.
pub(super) fn check(destination: &DestinationConfig, secret: Option<&str>) -> Result<Option<Check>> {
    match &destination.kind {
        DestinationKind::Push(push) => {
            let mut push = push.clone();
            if let (true, Some(secret)) = (push.secrets.is_empty(), secret) {
                push.secrets.push(SigningSecret::parse(secret)?);
            }
            let url = push.url.clone();
            let looked_at = format!("POST {}", printable(&url.to_string()));
            let probed = match PushSink::new(push, Arc::new(SystemNetwork::default())) {
                Ok(sink) => runtime()?.block_on(sink.probe()).map_err(|unreached| {
                    let fix = fix(unreached.rule, &url);
                    (unreached.reason, fix)
                }),
                Err(error) => Err((error.to_string(), String::new())),
            };
            Ok(Some(match probed {
                Ok(()) => Check {
                    ok: true,
                    looked_at,
                    found: "it takes connections; nothing was sent".into(),
                    fix: None,
                },
                Err((found, fix)) => {
                    Check { ok: false, looked_at, found, fix: Some(fix).filter(|fix| !fix.is_empty()) }
                }
            }))
        }
        DestinationKind::Exec(exec) => Ok(exec.command.first().map(|program| program_check(program))),
        _ => Ok(None),
    }
}

fn fix(rule: PushRule, url: &PushUrl) -> String {
    let host = match url.host() {
        PushHost::Name(name) => name.clone(),
        PushHost::Address(address) => address.to_string(),
    };
    let waits = "hookstead keeps trying, and nothing is lost";
    match rule {
        PushRule::ConnectFailed | PushRule::Timeout => {
            format!("nothing listens on {host}:{}. Start your application; {waits}", url.port())
        }
        PushRule::NameUnresolved => format!("see that `{host}` is right and can be looked up here; {waits}"),
        // The other reasons say themselves what to do.
        _ => String::new(),
    }
}

fn program_check(program: &str) -> Check {
    let looked_at = format!("exec {}", printable(program));
    let found = if program.contains('/') {
        Some(program.into()).filter(|path: &std::path::PathBuf| is_program(path))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| is_program(path))
    };
    match found {
        Some(path) => {
            Check { ok: true, looked_at, found: format!("{} can be run", path.display()), fix: None }
        }
        None => Check {
            ok: false,
            looked_at,
            found: "there is no such program".into(),
            fix: Some(
                "put it there, or write its whole path; hookstead keeps trying, and nothing is lost".into(),
            ),
        },
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
