//! What `send` sent last, so that `--duplicate` and `--conflict` can follow in a call of their own: a small file
//! in the data folder, readable by its owner only.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::sample::Sample;

const FILE: &str = "last-sent.json";

/// For how many addresses the last sample is kept. People try a handful.
const ADDRESSES_MAX: usize = 64;

/// The file, and what it holds, the newest last.
pub(crate) struct LastSent {
    path: PathBuf,
    entries: Vec<Entry>,
}

#[derive(Deserialize, Serialize)]
struct Entry {
    url: String,
    event_type: String,
    id: String,
    content_type: String,
    body_base64: String,
}

impl LastSent {
    /// Reads the file of a data folder. Without one, nothing was sent yet; one that cannot be read is said so.
    pub(crate) fn of(data: &Path) -> Result<Self> {
        let path = data.join(FILE);
        let entries = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .with_context(|| format!("cannot read {}; remove it to start anew", path.display()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        Ok(Self { path, entries })
    }

    /// The last sample that was sent to this address.
    pub(crate) fn get(&self, url: &str) -> Result<Option<Sample>> {
        let Some(entry) = self.entries.iter().find(|entry| entry.url == url) else { return Ok(None) };
        let body = STANDARD
            .decode(&entry.body_base64)
            .with_context(|| format!("cannot read {}; remove it to start anew", self.path.display()))?;
        Ok(Some(Sample {
            event_type: entry.event_type.clone(),
            id: entry.id.clone(),
            content_type: entry.content_type.clone(),
            body: body.into(),
        }))
    }

    /// Notes the sample and writes the file. The file is replaced as a whole.
    pub(crate) fn put(&mut self, url: &str, sample: &Sample) -> Result<()> {
        self.entries.retain(|entry| entry.url != url);
        self.entries.push(Entry {
            url: url.to_owned(),
            event_type: sample.event_type.clone(),
            id: sample.id.clone(),
            content_type: sample.content_type.clone(),
            body_base64: STANDARD.encode(&sample.body),
        });
        let surplus = self.entries.len().saturating_sub(ADDRESSES_MAX);
        self.entries.drain(..surplus);
        self.write().with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn write(&self) -> Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = self.path.with_extension(format!("{}.new", std::process::id()));
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(&self.entries)?)?;
        fs::rename(&new, &self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(id: &str) -> Sample {
        let (event_type, content_type) = ("t".to_owned(), "text/plain".to_owned());
        Sample { event_type, id: id.to_owned(), content_type, body: b"\x00\xff".as_slice().into() }
    }

    #[test]
    fn the_last_sample_of_each_address_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        assert_eq!(LastSent::of(&data).unwrap().get("a").unwrap(), None);
        for (url, id) in [("a", "1"), ("b", "2"), ("a", "3")] {
            LastSent::of(&data).unwrap().put(url, &sample(id)).unwrap();
        }
        let last = LastSent::of(&data).unwrap();
        assert_eq!(last.get("a").unwrap(), Some(sample("3")));
        assert_eq!(last.get("b").unwrap(), Some(sample("2")));
        assert_eq!(fs::read_dir(&data).unwrap().count(), 1);
    }

    #[test]
    fn the_file_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=ADDRESSES_MAX {
            LastSent::of(folder.path()).unwrap().put(&number.to_string(), &sample("x")).unwrap();
        }
        let last = LastSent::of(folder.path()).unwrap();
        assert_eq!(last.entries.len(), ADDRESSES_MAX);
        assert_eq!(last.get("0").unwrap(), None);
    }
}
