//! A write-ahead log under any bytes (see [`crate::fuzzing`]). Its checksums keep nearly all made-up bytes out; so an input
//! says up to which frame they are to be put right.

use std::path::Path;

use super::log_format::{ByteOrder, Checksum, FRAME_HEAD_BYTES, LOG_HEADER_BYTES};
use super::log_scan::scan;
use crate::fs::Fs;
use crate::sim::SimDisk;

/// The smallest page, so that a short input has several frames.
const PAGE_BYTES: usize = 512;
const FRAME_BYTES: usize = FRAME_HEAD_BYTES + PAGE_BYTES;

/// How many frames are put right (a byte), the database in pages (a byte), the database, the log.
pub fn wal(input: &[u8]) {
    let Some((&[frames, pages], rest)) = input.split_first_chunk::<2>() else { return };
    let (database, log) = rest.split_at((usize::from(pages % 4) * PAGE_BYTES).min(rest.len()));
    check(database, log);
    let mut sealed = log.to_vec();
    seal(&mut sealed, usize::from(frames));
    check(database, &sealed);
}

fn check(database: &[u8], log: &[u8]) {
    let disk = SimDisk::new(1);
    let (database_path, log_path) = (Path::new("/db"), Path::new("/db-wal"));
    for (path, bytes) in [(database_path, database), (log_path, log)] {
        let file = disk.create_new(path).expect("the disk is empty");
        file.write_all_at(bytes, 0).expect("the disk is sound");
    }
    let with_database = scan(&disk, log_path, Some(database_path)).expect("the disk is sound");
    let alone = scan(&disk, log_path, None).expect("the disk is sound");
    assert_eq!(with_database.committed, alone.committed);
    assert!(with_database.committed as usize * FRAME_BYTES <= log.len());
    // The database can only add to what the log says of itself.
    assert!(alone.damage.is_none() || alone.damage == with_database.damage);
    for damage in [alone.damage, with_database.damage].into_iter().flatten() {
        assert!(damage.to_string().contains("acknowledged"));
    }
}

/// Puts a header, and salts and checksums of the first frames, as SQLite would have written them.
fn seal(log: &mut [u8], frames: usize) {
    if log.len() < LOG_HEADER_BYTES {
        return;
    }
    let (header, rest) = log.split_at_mut(LOG_HEADER_BYTES);
    header[..4].copy_from_slice(&0x377f_0682_u32.to_be_bytes());
    header[8..12].copy_from_slice(&512_u32.to_be_bytes());
    let mut sum = Checksum::START.over(ByteOrder::Little, &header[..24]);
    header[24..].copy_from_slice(&sum.to_bytes());
    let salts: [u8; 8] = header[16..24].try_into().expect("it has eight bytes");
    for frame in rest.chunks_exact_mut(FRAME_BYTES).take(frames) {
        frame[8..16].copy_from_slice(&salts);
        sum = sum.over(ByteOrder::Little, &frame[..8]).over(ByteOrder::Little, &frame[FRAME_HEAD_BYTES..]);
        frame[16..24].copy_from_slice(&sum.to_bytes());
    }
}
