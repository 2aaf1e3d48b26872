//! Keeps the binary small: relocations packed, functions that came out the same kept once.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    // Where Rust links with lld of its own.
    if of("ARCH") == "x86_64" && of("OS") == "linux" && of("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
