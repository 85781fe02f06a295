//! A wall clock that a test sets while the server runs: libfaketime below the real binary. Monotonic time goes on as it
//! is.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use tempfile::TempDir;

use super::{Project, Server};

/// What the dynamic linker loads first to give a process another wall clock, as `faketime` itself names it.
pub(crate) static CLOCK_LIBRARY: LazyLock<String> = LazyLock::new(|| {
    let arguments = ["-m", "-f", "@2020-01-01 00:00:00", "printenv", "LD_PRELOAD"];
    let output = Command::new("faketime").args(arguments).output();
    let output = output.expect("faketime starts; if it is missing, run `cargo xtask setup`");
    String::from_utf8(output.stdout).expect("a path").trim().to_owned()
});

/// A clock that runs as the machine's does, some seconds before or behind it.
pub(crate) struct WallClock {
    folder: TempDir,
    processes: RefCell<Vec<u32>>,
}

impl WallClock {
    /// So many seconds ahead of the machine's.
    pub(crate) fn ahead_by(seconds: i64) -> Self {
        let clock =
            Self { folder: tempfile::tempdir().expect("a temporary folder"), processes: RefCell::default() };
        clock.set_ahead_by(seconds);
        clock
    }

    /// Jumps there, also for the servers that run.
    pub(crate) fn set_ahead_by(&self, seconds: i64) {
        let (new, file) = (self.folder.path().join("new"), self.folder.path().join("clock"));
        fs::write(&new, format!("{seconds:+}")).expect("the clock can be set");
        fs::rename(new, file).expect("the clock can be set");
    }

    /// Starts a server that has this clock.
    pub(crate) fn serve(&self, project: &Project) -> Server {
        let mut command = Command::new("env");
        let file = self.folder.path().join("clock");
        command.arg(format!("LD_PRELOAD={}", CLOCK_LIBRARY.as_str()));
        command.arg(format!("FAKETIME_TIMESTAMP_FILE={}", file.display()));
        // Read anew at every look at the clock; time limits go on as they are.
        command.args(["FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"]);
        let server = project.serve_under(command);
        self.processes.borrow_mut().push(server.pid());
        server
    }
}

impl Drop for WallClock {
    /// The clock library leaves its shared memory behind when a process is killed.
    fn drop(&mut self) {
        for process in self.processes.borrow().iter() {
            for name in [format!("faketime_shm_{process}"), format!("sem.faketime_sem_{process}")] {
                fs::remove_file(Path::new("/dev/shm").join(name)).unwrap_or_default();
            }
        }
    }
}
