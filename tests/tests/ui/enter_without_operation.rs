use yore_engine::{Call, Engine};

async fn sneak(engine: &Engine, call: &Call) {
    let _ = engine.system(yore_domain::VaultId::CATALOG, "because I can");
    let _ = engine.store();
    let _ = call;
}

fn main() {}
