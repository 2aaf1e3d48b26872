use yore_domain::VaultId;
use yore_policy::Principal;

fn main() {
    let _owner = Principal { vault: VaultId::CATALOG, who: todo!() };
}
