//! Nobody makes a permit, a principal or a lens by hand; the compiler says so.

#[test]
fn permits_cannot_be_forged() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
