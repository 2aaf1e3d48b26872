//! The scenes of `examples/governed`, played to the end.

#[path = "../examples/governed/scene.rs"]
mod scene;

#[tokio::test]
async fn every_agent_is_shown_what_the_scene_says() {
    for name in scene::NAMES {
        let told = scene::play(name).await.unwrap();
        assert!(told.contains("is shown"), "{told}");
    }
}

#[tokio::test]
async fn two_servers_let_each_others_agents_in() {
    let told = scene::bilateral().await.unwrap();
    assert_eq!(told.matches("1 of 2").count(), 2, "{told}");
}
