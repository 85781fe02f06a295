//! What a process has spent so far, as Linux counts it: processor time, and bytes for the disk.
//!
//! `/proc/PID/io` counts what the process made dirty; it misses what the file system's journal writes. The disk's
//! own count in `/proc/diskstats` has that too, and everybody else's writes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

/// The kernel counts in sectors of this size, whatever the disk's own is.
const SECTOR_BYTES: u64 = 512;

/// One process, and the disk that its files are on.
pub(super) struct Meter {
    pid: u32,
    /// The disk's major and minor number.
    disk: (u32, u32),
}

/// What was spent up to one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Processor time in user and kernel, of all threads; the kernel counts it in steps of 10 ms.
    pub(super) cpu: Duration,
    /// Bytes that the process had written to files, as they go to the disk.
    pub(super) written_bytes: u64,
    /// Bytes that the disk was given by everybody; `None` if the folder's file system is on no disk of its own.
    pub(super) disk_bytes: Option<u64>,
}

impl Meter {
    pub(super) fn new(pid: u32, folder: &Path) -> Result<Self> {
        let device =
            fs::metadata(folder).with_context(|| format!("cannot look at {}", folder.display()))?.dev();
        Ok(Self { pid, disk: (rustix::fs::major(device), rustix::fs::minor(device)) })
    }

    pub(super) fn read(&self) -> Result<Usage> {
        let file = |name: &str| {
            let path = format!("/proc/{}/{name}", self.pid);
            fs::read_to_string(&path).with_context(|| format!("cannot read {path}; has the server ended?"))
        };
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        let disks = fs::read_to_string("/proc/diskstats").context("cannot read /proc/diskstats")?;
        Ok(Usage {
            cpu: parse_cpu(&file("stat")?, ticks_per_second).context("/proc/PID/stat has another form")?,
            written_bytes: parse_field(&file("io")?, "write_bytes:")
                .context("/proc/PID/io has another form")?,
            disk_bytes: parse_disk(&disks, self.disk),
        })
    }

    /// Resident memory at its highest, in bytes.
    pub(super) fn memory_peak_bytes(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.pid);
        let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let kib = parse_field(&status, "VmHWM:").context("/proc/PID/status has no VmHWM")?;
        Ok(kib * 1024)
    }
}

impl Usage {
    /// What was spent since.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            disk_bytes: self.disk_bytes.zip(before.disk_bytes).map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// The fields utime and stime. The second field is the program's name, which may hold blanks and brackets.
fn parse_cpu(stat: &str, ticks_per_second: u64) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let ticks = ticks()? + ticks()?;
    Some(Duration::from_millis(ticks * 1000 / ticks_per_second))
}

/// The number after a name at the start of a line.
fn parse_field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

/// The disk's sectors written.
fn parse_disk(diskstats: &str, disk: (u32, u32)) -> Option<u64> {
    let sectors = diskstats.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let is_it = number(0)? == u64::from(disk.0) && number(1)? == u64::from(disk.1);
        if is_it { number(9) } else { None }
    })?;
    Some(sectors * SECTOR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_any_program_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 9 9 20 0 3 0 1000 1 1";
        assert_eq!(parse_cpu(stat, 100), Some(Duration::from_secs(3)));
        assert_eq!(parse_cpu("7 (short) S 1", 100), None);
    }

    #[test]
    fn fields_are_found_by_name() {
        let io = "wchar: 5\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n";
        assert_eq!(parse_field(io, "write_bytes:"), Some(8192));
        assert_eq!(parse_field("VmPeak:\t 1 kB\nVmHWM:\t  2048 kB\n", "VmHWM:"), Some(2048));
        assert_eq!(parse_field(io, "absent:"), None);
    }

    #[test]
    fn a_disk_is_found_by_its_numbers() {
        let stats = " 254 0 vda 1 0 8 0 2 0 100 0 0 0 0\n 254 1 vda1 1 0 8 0 2 0 30 0 0 0 0\n";
        assert_eq!(parse_disk(stats, (254, 1)), Some(30 * 512));
        assert_eq!(parse_disk(stats, (8, 0)), None);
    }

    #[test]
    fn this_process_can_be_measured() {
        let meter = Meter::new(std::process::id(), Path::new("/")).unwrap();
        let before = meter.read().unwrap();
        let after = meter.read().unwrap();
        assert!(after.cpu >= before.cpu && meter.memory_peak_bytes().unwrap() > 0);
    }
}
