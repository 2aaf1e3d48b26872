use yore_policy::{Permit, Principal};

fn forge(principal: Principal) -> Permit {
    Permit { principal, operation: "recall", verbs: Default::default(), lens: todo!() }
}

fn main() {}
