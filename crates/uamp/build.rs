//! Makes the types of the gRPC binding out of its definition. No protoc is needed.

use std::error::Error;
use std::path::PathBuf;

use protox::prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto/uamp.proto");
    let files = protox::compile(["uamp.proto"], ["proto"])?;
    let out = std::env::var_os("OUT_DIR").ok_or("cargo names no directory")?;
    // What server reflection shows to whoever asks.
    std::fs::write(PathBuf::from(out).join("uamp.bin"), files.encode_to_vec())?;
    tonic_prost_build::configure().build_transport(false).compile_fds(files)?;
    Ok(())
}
