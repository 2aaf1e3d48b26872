use yore_domain::class::Surface;
use yore_policy::Lens;

fn main() {
    let _everything = Lens::everything(Surface::Retrieval);
}
