//! The real binary on a disk whose syncs can be slowed and sped up while it runs: a small library between the program
//! and the kernel, built here and loaded into it. Nothing in the product knows of it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

const SOURCE: &str = include_str!("slow_disk.c");

/// The numbers that the library and this process share.
const CONTROL_BYTES: u64 = 4096;

pub(super) struct SlowDisk {
    folder: TempDir,
    control: File,
}

impl SlowDisk {
    /// Builds the library. The disk is as fast as it is.
    pub(super) fn build() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = folder.path().join("slow_disk.c");
        fs::write(&source, SOURCE).expect("the source can be written");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]);
        let built = compile.arg(folder.path().join("slow_disk.so")).arg(&source).output();
        let built = built.expect("`cc` starts; the product's build needs it too");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let control = folder.path().join("control");
        let control =
            File::options().read(true).write(true).create_new(true).open(control).expect("a new file");
        control.set_len(CONTROL_BYTES).expect("a page");
        Self { folder, control }
    }

    /// A command to which the program that is to have this disk is added as arguments.
    pub(super) fn below(&self) -> Command {
        let path = |name: &str| -> PathBuf { self.folder.path().join(name) };
        let mut env = Command::new("env");
        env.arg(format!("LD_PRELOAD={}", path("slow_disk.so").display()));
        env.arg(format!("SLOW_DISK_CONTROL={}", path("control").display()));
        env
    }

    /// From now on every sync takes this long; one that is under way as well.
    pub(super) fn slow_by(&self, delay: Duration) {
        let delay = i64::try_from(delay.as_micros()).expect("a delay in microseconds");
        self.control.write_all_at(&delay.to_ne_bytes(), 0).expect("the page can be written");
    }

    /// How many syncs were slowed.
    pub(super) fn slowed(&self) -> i64 {
        let mut bytes = [0; 8];
        self.control.read_exact_at(&mut bytes, 8).expect("the page can be read");
        i64::from_ne_bytes(bytes)
    }
}
