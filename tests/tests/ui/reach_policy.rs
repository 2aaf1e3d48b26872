use yore_policy::Permit;

fn main() {
    let _ = std::mem::size_of::<Permit>();
}
