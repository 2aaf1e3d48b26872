//! What a protocol crate cannot write, shown by the compiler.

#[test]
fn a_protocol_crate_reaches_neither_policy_nor_store() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
