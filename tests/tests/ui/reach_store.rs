use yore_store::Plan;

fn main() {
    let _ = std::mem::size_of::<Plan>();
}
