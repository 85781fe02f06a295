//! Disks that a store of files cannot be on, refused at the start in words that help.

use std::path::Path;

use hookstead_core::Outcome;
use hookstead_store::fs::{FileSystem, Fs};
use hookstead_store::sim::{Fault, Links, SimDisk, When};
use hookstead_store::{OpenError, OpenOptions, open};

use super::backend::{Dir, url};
use super::cut::{ROOT, open_on};
use crate::backend::OPENED_AT;
use crate::case::cases;
use crate::scene::{accept, events, register};

cases!("files::refusal":
    a_network_file_system_is_refused_before_anything_is_made,
    a_file_system_without_hard_links_is_refused,
    a_file_system_that_does_not_sync_is_refused,
    a_disk_without_room_is_refused_and_opens_when_there_is_some,
    a_volatile_file_system_is_told,
    a_folder_that_cannot_be_written_is_refused,
    a_url_without_a_folder_is_refused,
);

fn refused(disk: &SimDisk) -> OpenError {
    open_on(disk).expect_err("it is refused")
}

fn a_network_file_system_is_refused_before_anything_is_made() {
    let disk = SimDisk::new(1);
    disk.pose_as(FileSystem::Network("NFS"), Links::Made);
    let error = refused(&disk);
    assert!(matches!(error, OpenError::NetworkFileSystem { kind: "NFS", .. }), "{error}");
    assert_eq!(disk.operations(), 0);
}

fn a_file_system_without_hard_links_is_refused() {
    let disk = SimDisk::new(1);
    disk.pose_as(FileSystem::Local, Links::Refused);
    let error = refused(&disk);
    assert!(matches!(error, OpenError::Unfit { .. }), "{error}");
    assert!(error.to_string().contains("hard links") && error.to_string().contains("sqlite:PATH"), "{error}");
    let names = disk.list(Path::new(ROOT)).expect("the folder was made");
    assert_eq!(names, ["lock"], "the probe leaves nothing");
}

fn a_file_system_that_does_not_sync_is_refused() {
    let disk = SimDisk::new(1);
    drop(open_on(&disk).expect("a new disk takes a store"));
    let mut unfit = 0;
    for place in 0..8 {
        disk.fail(Fault::Io, When::Once(place));
        let error = refused(&disk);
        unfit += u32::from(matches!(&error, OpenError::Unfit { what, .. } if what.contains("does not sync")));
    }
    disk.heal();
    assert_eq!(unfit, 2, "the probe syncs a file and a folder");
    assert!(open_on(&disk).is_ok());
}

fn a_disk_without_room_is_refused_and_opens_when_there_is_some() {
    let disk = SimDisk::new(1);
    let store = open_on(&disk).expect("a new disk takes a store").store;
    register(&store);
    assert_eq!(accept(&store, "evt_1", b"1"), Outcome::Stored);
    drop(store);
    disk.fail(Fault::NoSpace, When::From(0));
    let error = refused(&disk);
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
    disk.heal();
    assert_eq!(events(&open_on(&disk).expect("there is room").store).len(), 1);
}

fn a_volatile_file_system_is_told() {
    let disk = SimDisk::new(1);
    disk.pose_as(FileSystem::Volatile("tmpfs"), Links::Made);
    let store = open_on(&disk).expect("it works").store;
    assert!(store.facts().durability.contains("tmpfs"), "{}", store.facts().durability);
}

fn a_folder_that_cannot_be_written_is_refused() {
    let dir = Dir::new();
    std::fs::create_dir(dir.root()).expect("it can be made");
    // A folder in the place of the lock keeps out everybody, root too.
    std::fs::create_dir(dir.root().join("lock")).expect("it can be made");
    let error = dir.try_open().expect_err("it is refused");
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
    assert!(error.to_string().contains("lock"), "{error}");
}

fn a_url_without_a_folder_is_refused() {
    let error = open("files:", &OpenOptions::default(), OPENED_AT).expect_err("it is refused");
    assert!(matches!(error, OpenError::NoPath { .. }), "{error}");
    let dir = Dir::new();
    assert!(open(&format!("{}/", url(&dir.root())), &OpenOptions::default(), OPENED_AT).is_ok());
}
