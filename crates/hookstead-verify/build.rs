//! Lists `providers/*.toml`, so that a new provider is one new file there and no line of code.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=providers");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let mut names: Vec<String> = fs::read_dir(Path::new(&root).join("providers"))
        .expect("the folder `providers` is part of the crate")
        .map(|entry| entry.expect("an entry of `providers`").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .filter_map(|path| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned))
        .collect();
    names.sort();
    fs::write(Path::new(&out).join("providers.rs"), table(&names)).expect("OUT_DIR can be written");
}

fn table(names: &[String]) -> String {
    let mut text = String::from("const RECORDS: &[(&str, &str)] = &[\n");
    for name in names {
        writeln!(
            text,
            "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/providers/{name}.toml\"))),"
        )
        .expect("writing to a String cannot fail");
    }
    text.push_str("];\n");
    text
}
