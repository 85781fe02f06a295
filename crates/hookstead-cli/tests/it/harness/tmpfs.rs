//! A file system in memory of a few megabytes, to be filled: mounted by the test itself, in a namespace of its own if
//! it may not mount. A machine on which neither works fails the test and is told what is missing.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A mounted file system, gone when this is dropped.
pub(crate) struct Tmpfs {
    folder: TempDir,
    /// The process that keeps the namespace in which it is mounted; `None`: it is mounted for everybody.
    keeper: Option<Child>,
}

impl Tmpfs {
    /// Mounts one of this size.
    pub(crate) fn mount(mebibytes: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let size = format!("size={mebibytes}m");
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Self { folder, keeper: None };
        }
        let keeper = in_namespace(folder.path(), &size);
        Self { folder, keeper: Some(keeper) }
    }

    /// Its path, as programs see it that run in its namespace.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Its path as this process sees it.
    fn seen_from_here(&self) -> PathBuf {
        let path = self.folder.path();
        let Some(keeper) = &self.keeper else { return path.to_owned() };
        let below = path.strip_prefix("/").expect("an absolute path");
        Path::new("/proc").join(keeper.id().to_string()).join("root").join(below)
    }

    /// A command to which the program that is to see the file system is added as arguments.
    pub(crate) fn enter(&self) -> Command {
        let Some(keeper) = &self.keeper else { return Command::new("env") };
        let mut enter = Command::new("nsenter");
        enter.args(["--preserve-credentials", "-U", "-m", "-w", "-t", &keeper.id().to_string()]);
        enter
    }

    /// From now on nothing can be written to it, by root neither.
    pub(crate) fn make_read_only(&self) {
        let mut mount = self.enter();
        mount.args(["mount", "-o", "remount,ro"]).arg(self.path());
        let mounted = mount.output().expect("a program starts");
        assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
    }

    /// Fills it with a file up to the last byte.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.ballast()).expect("a new file");
        for bytes in [1 << 20, 4096, 1] {
            while file.write_all(&vec![0; bytes]).is_ok() {}
        }
    }

    /// Gives back what [`Tmpfs::fill`] took.
    pub(crate) fn relieve(&self) {
        fs::remove_file(self.ballast()).expect("the file can be removed");
    }

    fn ballast(&self) -> PathBuf {
        self.seen_from_here().join("ballast")
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        match &mut self.keeper {
            // Its mount goes with the last process of the namespace.
            Some(keeper) => {
                keeper.kill().expect("an own child can be killed");
                keeper.wait().expect("an own child can be awaited");
            }
            None => {
                let unmounted = Command::new("umount").arg("-l").arg(self.folder.path()).status();
                assert!(unmounted.is_ok_and(|status| status.success()), "umount works where mount does");
            }
        }
    }
}

fn in_namespace(folder: &Path, size: &str) -> Child {
    // It says when it is there, and stays until it is killed or the test is gone.
    let script = "mount -t tmpfs -o \"$1\" tmpfs \"$0\" && echo mounted && exec cat";
    let mut keeper = Command::new("unshare")
        .args(["-r", "-m", "sh", "-c", script])
        .arg(folder)
        .arg(size)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare starts");
    let mut said = String::new();
    let stdout = keeper.stdout.take().expect("stdout is a pipe");
    BufReader::new(stdout).read_line(&mut said).expect("its stdout can be read");
    assert!(
        said == "mounted\n",
        "no tmpfs: neither `mount` nor `unshare -r -m` may; run as root, or allow user namespaces"
    );
    keeper
}
