//! `hookstead sign`: the headers that a provider would send with a body, without sending anything.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use hookstead_core::Timestamp;
use hookstead_verify::SignedRequest;
use serde::Serialize;

use crate::cmd::send::{SecretArgs, Target};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::place::PlaceArgs;
use crate::sample::{Sample, now};

/// No provider sends more.
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

const EXAMPLES: &str = "\
Examples:
  hookstead sign stripe --body event.json
  hookstead sign github --event push --curl
  printf '{}' | hookstead sign svix --body - --id msg_1 --secret-env SVIX_SECRET --json";

const JSON: &str = "\
JSON: {\"provider\", \"method\", \"url\", \"id\", \"headers\": {NAME: VALUE}, \"body_base64\"}.

Without --body, a sample event of the provider is signed; --curl then holds its body. A provider that keeps the \
event id or the time in the body takes them from there.";

/// Sign a body as a provider would and print the headers; nothing is sent
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(crate) struct Sign {
    /// The provider, such as stripe or github.
    provider: String,
    /// The body; `-` reads stdin [default: a sample event].
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// The event id, for providers that send it in a header [default: one of the right form].
    #[arg(long)]
    id: Option<String>,
    /// The event type, for providers that send it in a header.
    #[arg(long, value_name = "TYPE")]
    event: Option<String>,
    /// The time to sign, in Unix seconds [default: now].
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    timestamp: Option<i64>,
    /// The content type of the body.
    #[arg(long, value_name = "TYPE", default_value = "application/json")]
    content_type: String,
    /// Print a curl command that sends it.
    #[arg(long, conflicts_with = "json")]
    curl: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    secret: SecretArgs,
    /// The address that is signed, for providers that sign it [default: the source's].
    #[arg(long, value_name = "URL", help_heading = "Where")]
    to: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &Sign) -> Result<()> {
    let config = args.place.load()?;
    let target = Target::find(&args.provider, &args.secret, args.to.as_deref(), &config)?;
    let at = args.timestamp.map_or_else(now, Timestamp::from_secs);
    let sample = sample(args, &target, at)?;
    let mut signed = target.signer.sign(&sample, &target.signed_url, at)?;
    if args.curl {
        signed.url = target.posted_url(&signed.url);
        return output::line(curl(&signed, args.body.as_deref()));
    }
    if args.json { output::json(&document(&signed, &sample, &target)) } else { print_headers(&signed) }
}

fn sample(args: &Sign, target: &Target, at: Timestamp) -> Result<Sample> {
    let (event_type, id) = (args.event.as_deref(), args.id.as_deref());
    let Some(file) = &args.body else { return target.signer.sample(event_type, id, at) };
    let id = match id {
        Some(id) => id.to_owned(),
        None => target.signer.sample(None, None, at)?.id,
    };
    let event_type = event_type.unwrap_or_default().to_owned();
    Ok(Sample { event_type, id, content_type: args.content_type.clone(), body: read(file)?.into() })
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    let reader: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let opened = File::open(file).map_err(|error| {
            Failure::new(Exit::NotFound, "no-body", format!("cannot read {}: {error}", file.display()))
                .fix("name a file with --body, or `-` for stdin")
        })?;
        Box::new(opened)
    };
    reader
        .take(BODY_BYTES_MAX + 1)
        .read_to_end(&mut body)
        .with_context(|| format!("cannot read {}", file.display()))?;
    if body.len() as u64 > BODY_BYTES_MAX {
        return Err(Failure::new(Exit::Failed, "too-large", "the body is larger than 64 MiB").into());
    }
    Ok(body)
}

fn print_headers(signed: &SignedRequest) -> Result<()> {
    for (name, value) in &signed.headers {
        output::line(format_args!("{name}: {}", String::from_utf8_lossy(value)))?;
    }
    Ok(())
}

/// What was signed, for programs.
#[derive(Serialize)]
struct Document<'a> {
    provider: &'a str,
    method: &'a str,
    url: &'a str,
    id: &'a str,
    headers: BTreeMap<&'a str, Cow<'a, str>>,
    body_base64: String,
}

fn document<'a>(signed: &'a SignedRequest, sample: &'a Sample, target: &'a Target) -> Document<'a> {
    let header = |(name, value): &'a (String, Vec<u8>)| (name.as_str(), String::from_utf8_lossy(value));
    Document {
        provider: target.signer.provider().name(),
        method: &signed.method,
        url: &signed.url,
        id: &sample.id,
        headers: signed.headers.iter().map(header).collect(),
        body_base64: STANDARD.encode(&signed.body),
    }
}

/// A command for a POSIX shell. The body is named by its file where there is one, else it stands in the command.
fn curl(signed: &SignedRequest, file: Option<&Path>) -> String {
    let mut command = format!("curl -i -X {} {}", signed.method, quoted(&signed.url));
    for (name, value) in &signed.headers {
        let header = format!("{name}: {}", String::from_utf8_lossy(value));
        command.push_str(&format!(" \\\n  -H {}", quoted(&header)));
    }
    // --data-binary sends a file's line ends as they are, --data-raw gives `@` no meaning.
    let data = match file {
        Some(file) => format!("--data-binary {}", quoted(&format!("@{}", file.display()))),
        None => format!("--data-raw {}", quoted(&String::from_utf8_lossy(&signed.body))),
    };
    command.push_str(&format!(" \\\n  {data}"));
    command
}

/// In single quotes nothing has a meaning but the quote itself.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_command_as_it_is_meant() {
        let signed = SignedRequest {
            method: "POST".to_owned(),
            url: "http://127.0.0.1:1/in/a?b='c'&d=$HOME".to_owned(),
            headers: vec![("x-sig".to_owned(), b"v1=`id`".to_vec())],
            body: b"it's \\ \"x\"\n@file".to_vec(),
        };
        let command = curl(&signed, None).replacen("curl", "printf '<%s>'", 1);
        let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            printed,
            "<-i><-X><POST><http://127.0.0.1:1/in/a?b='c'&d=$HOME><-H><x-sig: v1=`id`>\
             <--data-raw><it's \\ \"x\"\n@file>"
        );
    }
}
