//! Whether a path still names the file that was opened: what is written to a file that was moved, deleted or replaced
//! under a running store goes to where no start will look, and a file that was cut short has lost what was acknowledged.

use std::io;
use std::path::Path;

use crate::fs::FileFacts;

/// What to do about it: the process must end in any case, since it has the other file open.
const FIX: &str = "put the file that was opened back in its place, or restore a backup, and start again";

/// What the path names `now`, if that is the file `opened` and holds at least `bytes` bytes. The error says what is
/// wrong and what to do.
pub(crate) fn check(
    path: &Path,
    opened: &FileFacts,
    bytes: u64,
    now: io::Result<Option<FileFacts>>,
) -> Result<FileFacts, String> {
    let wrong = |what: &str| Err(format!("`{}` {what}; {FIX}", path.display()));
    match now {
        Ok(Some(now)) if !now.same_file(opened) => wrong("is another file than the one that was opened"),
        Ok(Some(now)) if now.bytes < bytes => {
            wrong(&format!("was cut short: it has {} bytes and had {bytes}", now.bytes))
        }
        Ok(Some(now)) => Ok(now),
        Ok(None) => wrong("is gone"),
        Err(error) => wrong(&format!("cannot be looked at ({error})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_a_shorter_one_and_none_are_told_with_the_fix() {
        let facts = |inode, bytes| FileFacts { device: 1, inode, bytes, is_dir: false };
        let check = |now| check(Path::new("/d/log"), &facts(5, 7), 10, now);
        assert_eq!(check(Ok(Some(facts(5, 10)))), Ok(facts(5, 10)));
        assert_eq!(check(Ok(Some(facts(5, 11)))), Ok(facts(5, 11)));
        for (now, says) in [
            (Ok(Some(facts(6, 10))), "another file"),
            (Ok(Some(facts(5, 9))), "has 9 bytes and had 10"),
            (Ok(None), "is gone"),
            (Err(io::ErrorKind::PermissionDenied.into()), "cannot be looked at"),
        ] {
            let reason = check(now).unwrap_err();
            assert!(reason.contains(says) && reason.contains("start again"), "{reason}");
        }
    }
}
