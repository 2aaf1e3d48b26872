//! Runs the scenes of `examples/governed` and prints who sees what.

mod scene;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in scene::NAMES {
        print!("{}", scene::play(name).await?);
    }
    print!("{}", scene::bilateral().await?);
    Ok(())
}
