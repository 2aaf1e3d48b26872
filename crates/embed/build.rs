//! Packs the model files, so that the binary is some megabytes smaller than they are.

use std::{env, fs, io, path::Path};

#[path = "build/pack.rs"]
mod pack;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/pack.rs");
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    for name in ["minilm-l6-v2", "static-256"] {
        let from = format!("models/{name}.int8.bin");
        println!("cargo::rerun-if-changed={from}");
        fs::write(Path::new(&out).join(format!("{name}.packed")), pack::model(&fs::read(from)?))?;
    }
    Ok(())
}
