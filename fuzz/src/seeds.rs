//! The inputs that the targets begin with, made from what is in the repository: its vectors, records, documents and
//! fixtures.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hookstead_verify::fuzzing::Requests;

use crate::{Target, files, root, vectors};

/// A longer seed is left out: nearly all of its mutations would be in a part that nobody reads closely.
const SEED_BYTES_MAX: usize = 64 * 1024;

/// Writes the seeds of a target into this folder, each named by its digest.
pub(crate) fn write(target: Target, to: &Path) -> Result<()> {
    let seeds = of(target)?;
    let kept: Vec<_> = seeds.iter().filter(|seed| seed.len() <= SEED_BYTES_MAX).collect();
    if kept.is_empty() {
        bail!("there is no seed for {target:?}");
    }
    for seed in kept {
        let path = to.join(hookstead_store::fuzzing::name(seed));
        fs::write(&path, seed).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn of(target: Target) -> Result<Vec<Vec<u8>>> {
    let store = root().join("crates/hookstead-store/tests/it/fixtures/files-format-1");
    Ok(match target {
        Target::Request => requests()?,
        Target::Template => templates(&records()?, &requests()?),
        Target::Record => records()?,
        Target::Keys => keys()?,
        Target::Names => texts(NAMES),
        Target::Answer => texts(ANSWERS),
        Target::Cursor => texts(CURSORS),
        Target::Config => configs()?,
        Target::Entry => contents(&store, "json")?,
        Target::Journal => journals(&store)?,
        Target::Wal => logs(),
        Target::Backup => texts(BACKUPS),
    })
}

fn requests() -> Result<Vec<Vec<u8>>> {
    Ok(Requests::new(&vectors()?).1)
}

fn records() -> Result<Vec<Vec<u8>>> {
    contents(&root().join("crates/hookstead-verify/providers"), "toml")
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn contents(folder: &Path, ending: &str) -> Result<Vec<Vec<u8>>> {
    let read = |path: &_| fs::read(path).with_context(|| "cannot read a seed");
    files(folder, ending)?.iter().map(read).collect()
}

/// Every text in the records that looks like a template, over a request.
fn templates(records: &[Vec<u8>], requests: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let records = records.iter().map(|record| String::from_utf8_lossy(record));
    let mut found: Vec<String> = records
        .flat_map(|record| record.split('"').map(str::to_owned).collect::<Vec<_>>())
        .filter(|text| text.contains('{') && text.contains('}') && !text.contains('\n'))
        .collect();
    found.sort_unstable();
    found.dedup();
    let request = |n: usize| {
        requests.get(n % requests.len().max(1)).and_then(|input| input.get(6..)).unwrap_or_default()
    };
    found.iter().enumerate().map(|(n, text)| [text.as_bytes(), b"\0", request(n * 7)].concat()).collect()
}

/// The public keys that stand in the vectors.
fn keys() -> Result<Vec<Vec<u8>>> {
    let vectors = contents(&root().join("crates/hookstead-verify/vectors"), "json")?;
    let mut found = Vec::new();
    for text in vectors.iter().map(|text| String::from_utf8_lossy(text)) {
        for begin in ["-----BEGIN", "{\"keys\":", "{\"kty\":", "MCowBQYDK2VwAyEA", "MFkwEwYHKoZIzj0C"] {
            let ends = text.match_indices(begin).map(|(at, _)| &text[at..]);
            found.extend(
                ends.map(|rest| {
                    rest.chars().take(1_500).collect::<String>().replace("\\n", "\n").into_bytes()
                }),
            );
        }
    }
    found.push(br#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#.to_vec());
    Ok(found)
}

/// The TOML blocks of the documents.
fn configs() -> Result<Vec<Vec<u8>>> {
    let mut found = texts(&[CONFIG]);
    for document in files(root(), "md")? {
        let text =
            fs::read_to_string(&document).with_context(|| format!("cannot read {}", document.display()))?;
        found.extend(
            text.split("```toml\n")
                .skip(1)
                .filter_map(|rest| Some(rest.split("```").next()?.as_bytes().to_vec())),
        );
    }
    Ok(found)
}

/// A log, its batch alone, and a segment with a record in it.
fn journals(store: &Path) -> Result<Vec<Vec<u8>>> {
    let log = fs::read(store.join("work.log")).context("cannot read the log of the fixture")?;
    let text = String::from_utf8_lossy(&log);
    let batch = text.trim_end().split_once("\"batch\":").and_then(|(_, batch)| batch.strip_suffix('}'));
    let batch = batch.context("the log of the fixture has no batch")?;
    let rows = batch.split("},{\"kind\"").map(|row| {
        let row = row.trim_end_matches(['}', ']']);
        format!("{{\"number\":0,\"rows\":[{{\"kind\"{row}}}]}}")
    });
    let mut found: Vec<Vec<u8>> = rows.map(String::into_bytes).collect();
    found.push(batch.as_bytes().to_vec());
    found.push([batch.as_bytes(), b"\0sources/shop/deliveries/0123456789.json {}"].concat());
    found.push(log);
    Ok(found)
}

/// Logs of a few frames of the smallest page, of one transaction and of several.
fn logs() -> Vec<Vec<u8>> {
    let frame = |page: u8, mark: u8| {
        let mut frame = vec![0; 24 + 512];
        (frame[3], frame[7], frame[100]) = (page, mark, page);
        frame
    };
    let log = |marks: &[u8]| {
        let frames = (1..).zip(marks).flat_map(|(page, mark)| frame(page, *mark));
        [2, 1].into_iter().chain(vec![7; 512]).chain(vec![9; 32]).chain(frames).collect::<Vec<u8>>()
    };
    vec![log(&[1]), log(&[0, 2, 0, 4]), log(&[1, 2, 3, 0, 0, 6]), log(&[0, 0, 0])]
}

const CURSORS: &[&str] = &["3.1.1", "0.0.0", "18446744073709551615.1.1", "2", "5.0.0"];

const NAMES: &[&str] = &[
    "019c1c38-cb10-7912-8ceb-01e2f720c499",
    "019c1c38-cb10-7912-8ceb-01e2f720c499.1.1",
    "0001",
    "ZZZZZZZZZZZZZ",
    "@",
    "stripe:evt_1",
    "shop:a:b",
    "invoice.*",
    "ls_AZwcOMsQeRKM6wHi9yDEmQAAAAEAAAABAAAAAQAAAAEABkn_-9dAAA",
    "content-type: application/json\r\nx-raw: a\r\n",
    "1h30m",
    "25 MiB",
    "\u{3}\u{5}acct_1evt_1",
];

const ANSWERS: &[&str] = &[
    "120",
    "18446744073709551616",
    "Wed, 21 Oct 2026 07:28:00 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "https://example.com/in?x=1",
    "http://127.0.0.1:8080/",
    "http://[::ffff:169.254.169.254]/",
    "http://0x7f.1/",
    "https://user@example.com/#x",
    "http://localhost./",
];

const BACKUPS: &[&str] = &[
    r#"{"format":1,"kind":"sqlite","begun_at":"2026-02-02T02:40:00Z","files":1,"bytes":2,"events":3,"problems":0,"sums_sha256":"00"}"#,
    r#"{"format": 2}"#,
    "01  store/hookstead.db\n02  store/x\n",
    "pid = 1\nstarted_at_us = 1\nadmin = 127.0.0.1:1\n",
];

const CONFIG: &str = r#"
[server]
intake = "127.0.0.1:4665"
public_url = "https://hooks.example.com"
[store]
url = "sqlite:events.db"
min_free = "1 GiB"
[sources.shop]
provider = "stripe"
secret = { env = "SECRET" }
tolerance = "5m"
[sources.own]
identity = "header:X-Id"
[sources.own.scheme]
kind = "hmac"
header = "X-Signature"
[destinations.app]
kind = "push"
url = "http://127.0.0.1:8080/hooks"
allow_private = true
types = ["invoice.*"]
"#;
