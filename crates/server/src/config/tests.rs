use super::*;

fn env(pairs: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    let pairs: Vec<(String, String)> =
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    move |asked| pairs.iter().find(|(name, _)| name == asked).map(|(_, value)| value.clone())
}

#[test]
fn flags_lie_over_the_environment_and_that_over_the_file() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("config.toml");
    let text = "data = 'd'\nlog = 'warn'\n[listen]\nhttp = '127.0.0.1:1'\nhttps = '127.0.0.1:2'\n";
    std::fs::write(&file, text).unwrap();
    let config = Config::load(
        Layers::new()
            .file(&file)
            .env(env(&[("YORE_LISTEN", "127.0.0.1:3"), ("YORE_HOSTS", "a.example, b.example")]))
            .unwrap()
            .set("listen.http", "127.0.0.1:4"),
    )
    .unwrap();
    assert_eq!(config.listen.http.to_string(), "127.0.0.1:4");
    assert_eq!(config.listen.https.to_string(), "127.0.0.1:2");
    assert_eq!(config.listen.hosts, ["a.example", "b.example"]);
    assert_eq!(config.log, "warn");
    assert_eq!(config.limits.body, 2 << 20, "what nobody set is the default");
}

#[test]
fn the_environment_names_addresses_and_an_empty_variable_is_none() {
    let pairs = [
        ("YORE_DATA", "d"),
        ("YORE_LISTEN", "127.0.0.1:5"),
        ("YORE_TLS_LISTEN", "off"),
        ("YORE_SOCKET", ""),
    ];
    let config = Config::load(Layers::new().env(env(&pairs)).unwrap()).unwrap();
    assert_eq!(config.listen.http.to_string(), "127.0.0.1:5");
    assert_eq!(config.listen.https.to_string(), "off");
    assert!(config.listen.socket);
    let empty = [("YORE_DATA", ""), ("YORE_LISTEN", "")];
    let config = Config::load(Layers::new().set("data", "x").env(env(&empty)).unwrap()).unwrap();
    assert_eq!(config.data, std::path::Path::new("x"));
    assert_eq!(config.listen.http.to_string(), "127.0.0.1:7070");
}

#[test]
fn what_cannot_be_right_is_refused() {
    let base = || Layers::new().set("data", "d");
    let wrong = [
        (base().set("lisen.http", "off"), "lisen"),
        (base().set("listen.htp", "off"), "htp"),
        (base().set("listen.http", "localhost"), "localhost"),
        (base().set("listen.http", "0.0.0.0:7070"), "refusing plain HTTP on 0.0.0.0:7070"),
        (base().set("listen.http", "[::]:7070"), "refusing plain HTTP on [::]:7070"),
        (base().set("tls.key", "k.pem"), "belong together"),
        (base().set("limits.connections", 0), "limit of zero"),
        (base().set("limits.depth", 1000), "limits.depth"),
        (base().set("trust.did", "me"), "me is not a DID"),
        (base().set("publish.formats", vec!["xml"]), "publish.formats"),
    ];
    for (layers, expected) in wrong {
        let error = Config::load(layers).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for name in ["YORE_CONNECTIONS", "YORE_SOCKET"] {
        assert!(Layers::new().env(env(&[(name, "perhaps")])).is_err(), "{name}");
    }
    let both = env(&[("YORE_MASTER_KEY", "k"), ("YORE_PASSPHRASE", "p")]);
    assert!(Layers::new().env(both).is_err());
}

#[test]
fn tls_may_be_open_to_others() {
    let config = Config::load(Layers::new().set("data", "d").set("listen.https", "0.0.0.0:7443"));
    assert_eq!(config.unwrap().listen.https.to_string(), "0.0.0.0:7443");
}

#[test]
fn secrets_are_neither_printed_nor_written() {
    let secret = env(&[
        ("YORE_DATA", "d"),
        ("YORE_PASSPHRASE", "open sesame"),
        ("YORE_DATABASE", "postgres://yore:sesame@localhost/yore"),
    ]);
    let config = Config::load(Layers::new().env(secret).unwrap()).unwrap();
    assert!(config.database.as_ref().unwrap().expose().ends_with("@localhost/yore"));
    let (printed, written) = (format!("{config:?}"), config.to_toml().unwrap());
    assert!(!printed.contains("sesame") && !written.contains("sesame"));
    assert!(matches!(config.key, KeySource::Passphrase(_)));
    let back = Config::load(Layers::new().set("data", "d")).unwrap().to_toml().unwrap();
    assert_eq!(back, written, "the printed form reads back to the same settings");
}

#[test]
fn a_key_file_named_by_a_flag_wins_over_the_environment() {
    let layers = Layers::new().env(env(&[("YORE_DATA", "d"), ("YORE_PASSPHRASE", "x")])).unwrap();
    let config = Config::load(layers.set("key_file", "k")).unwrap();
    assert!(matches!(config.key, KeySource::File(path) if path.ends_with("k")));
}

#[test]
fn mw_102_consolidation_has_its_defaults_and_refuses_what_cannot_work() {
    let read = |text: &str| {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config.toml");
        std::fs::write(&file, format!("data = 'd'\n[consolidation]\n{text}\n")).unwrap();
        Config::load(Layers::new().file(&file))
    };
    let settings = read("").unwrap().consolidation.settings().unwrap();
    assert_eq!((settings.every, settings.window), (Span::seconds(60), 100));
    assert_eq!((settings.threshold, settings.scorers[0].name()), (0.6, "balanced"));
    let other = read("scorer = 'reference'\nevery_seconds = 5").unwrap();
    let settings = other.consolidation.settings().unwrap();
    assert_eq!((settings.every, settings.scorers[0].name()), (Span::seconds(5), "reference"));
    for wrong in
        ["threshold = 1.5", "threshold = -0.1", "window = 0", "scorer = 'nobody'", "evry = 1"]
    {
        assert!(matches!(read(wrong), Err(Error::Config(_))), "{wrong}");
    }
}
