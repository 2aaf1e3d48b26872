//! What the database itself shows, asked in plain SQL: to the server's role nothing but the rows
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]
//! of the vault it names, and to nobody a word.

#[path = "shared/support.rs"]
mod support;

use tokio_postgres::Client;
use yore_canon::encode::hex;
use yore_domain::VaultId;
use yore_domain::memory::Draft;
use yore_store::suite::Scene;
use yore_store::{Keeper, Store};

/// Every table of the schema, whole ones and parts, except the one that counts migrations.
async fn tables(client: &Client) -> Vec<String> {
    let sql = "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'yore' AND c.relkind IN ('r', 'p') AND c.relname <> 'migration'
        ORDER BY 1";
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

async fn count(client: &Client, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM yore.{table}");
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

/// The code with which a statement is refused.
async fn refusal(client: &Client, sql: &str) -> String {
    let error = client.batch_execute(sql).await.expect_err(sql);
    error.code().expect("the database itself refuses").code().to_owned()
}

/// A connection that acts as the server does.
async fn lesser(address: &str) -> Client {
    let client = support::connect(address).await;
    client.batch_execute("SET ROLE yore_app; SET search_path = yore, public").await.unwrap();
    client
}

const FORBIDDEN: &str = "42501";

/// Fills two vaults with something in as many tables as a few writes reach.
async fn two_vaults(store: &yore_store_postgres::PostgresStore) -> [VaultId; 2] {
    let mut vaults = Vec::new();
    for _ in 0..2 {
        let scene = Scene::new(store, store).await;
        scene.remember(Draft::text("the code word is marzipan")).await;
        let talk = yore_store::suite::talks::talk(&scene, "chat").await;
        yore_store::suite::talks::say(&scene, &talk, "marzipan it is").await;
        scene
            .commit(vec![
                yore_store::Write::Grant(Box::new(yore_store::suite::grant("marzipan"))),
                yore_store::Write::Setting("marzipan".into(), "marzipan".into()),
            ])
            .await;
        vaults.push(scene.owner().vault());
    }
    vaults.try_into().unwrap()
}

#[tokio::test]
async fn without_a_vault_there_are_no_rows() {
    let Some((store, ())) = support::empty_store().await else { return };
    let address = support::database().await.unwrap();
    let vaults = two_vaults(&store).await;
    let (owner, app) = (support::connect(&address).await, lesser(&address).await);
    let tables = tables(&owner).await;
    assert!(tables.len() > 100, "parts are tables, too");
    let mut filled = 0;
    for table in &tables {
        // Only whole tables are the server's to ask; a part is refused altogether.
        let there = count(&owner, table).await;
        filled += usize::from(there > 0);
        let sql = format!("SELECT count(*) FROM yore.{table}");
        match app.query_one(&sql, &[]).await {
            Ok(row) => assert_eq!(row.get::<_, i64>(0), 0, "{table} shows rows of nobody"),
            Err(error) => assert_eq!(error.code().unwrap().code(), FORBIDDEN, "{table}"),
        }
    }
    assert!(filled > 10, "the probe must have something to miss");

    // Naming a vault shows its rows and no others, until the transaction ends.
    let [one, other] = vaults.map(|vault| hex(&vault.bytes()));
    app.batch_execute(&format!("BEGIN; SET LOCAL yore.vault = '{one}'")).await.unwrap();
    for table in ["tail", "memory", "version", "document", "posting", "message", "audit", "line"] {
        let sql = format!("SELECT count(*), bool_and(vault = '\\x{one}') FROM {table}");
        let row = app.query_one(&sql, &[]).await.unwrap();
        assert!(row.get::<_, i64>(0) > 0 && row.get::<_, bool>(1), "{table}");
        let sql = format!("SELECT count(*) FROM {table} WHERE vault = '\\x{other}'");
        assert_eq!(app.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0), 0, "{table}");
        let sql = format!("DELETE FROM {table} WHERE vault = '\\x{other}'");
        assert_eq!(app.execute(&sql, &[]).await.unwrap(), 0, "{table}");
    }
    app.batch_execute("COMMIT").await.unwrap();
    assert_eq!(count(&app, "memory").await, 0, "the name is gone with the transaction");
}

#[tokio::test]
async fn the_role_cannot_go_round_the_wall() {
    let Some((store, ())) = support::empty_store().await else { return };
    let address = support::database().await.unwrap();
    let [one, other] = two_vaults(&store).await.map(|vault| hex(&vault.bytes()));
    let (owner, app) = (support::connect(&address).await, lesser(&address).await);
    let sql = "SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolcanlogin
        FROM pg_roles WHERE rolname = 'yore_app'";
    assert!(!owner.query_one(sql, &[]).await.unwrap().get::<_, bool>(0));
    let sql = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'yore' AND c.relkind IN ('r', 'p') AND c.relname <> 'migration'
            AND NOT (c.relrowsecurity AND c.relforcerowsecurity)";
    assert_eq!(owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 0, "every table has one");
    for sql in [
        "ALTER TABLE memory DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE memory NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY own ON memory",
        "CREATE POLICY mine ON memory USING (true)",
        "TRUNCATE memory",
        "INSERT INTO migration (number) VALUES (99)",
        "CREATE TABLE yore.mine (a integer)",
    ] {
        assert_eq!(refusal(&app, sql).await, FORBIDDEN, "{sql}");
    }
    // Nor may a vault write into another, whether by a new row or by giving one away.
    for sql in [
        format!("INSERT INTO setting VALUES ('\\x{other}', '\\x01', '\\x01')"),
        format!("UPDATE setting SET vault = '\\x{other}'"),
        format!("INSERT INTO tail (vault) VALUES ('\\x{other}')"),
    ] {
        app.batch_execute(&format!("BEGIN; SET LOCAL yore.vault = '{one}'")).await.unwrap();
        assert_eq!(refusal(&app, &sql).await, FORBIDDEN, "{sql}");
        app.batch_execute("ROLLBACK").await.unwrap();
    }
    assert_eq!(refusal(&app, "SET row_security = off; SELECT * FROM memory").await, FORBIDDEN);
}

#[tokio::test]
async fn no_word_lies_in_the_database() {
    let Some((store, ())) = support::empty_store().await else { return };
    let address = support::database().await.unwrap();
    two_vaults(&store).await;
    let owner = support::connect(&address).await;
    let spellings = ["marzipan".to_owned(), hex(b"marzipan"), hex(b"marzipa")];
    for table in tables(&owner).await {
        let sql = format!("SELECT coalesce(string_agg(t::text, ' '), '') FROM yore.{table} t");
        let text: String = owner.query_one(&sql, &[]).await.unwrap().get(0);
        for spelling in &spellings {
            assert!(!text.contains(spelling), "{table} tells {spelling}");
        }
    }
}

#[tokio::test]
async fn vaults_are_made_once_and_destroyed_for_good() {
    let Some((store, ())) = support::empty_store().await else { return };
    let address = support::database().await.unwrap();
    let name = VaultId::random().to_string();
    let made = futures::future::join_all((0..4).map(|_| support::vault(&store, &name))).await;
    assert!(made.windows(2).all(|two| two[0] == two[1]), "one owner has one vault");
    let info = made[0].clone();
    let permit = support::system(info.id);
    assert_eq!(store.info(&permit).await.unwrap(), Some(info.clone()));
    let listed = store.vaults(&support::system(VaultId::CATALOG)).await.unwrap();
    assert!(listed.contains(&info));
    // Another server on the same database opens the same vault with the same master key.
    let (second, ()) = support::empty_store().await.unwrap();
    assert_eq!(second.info(&permit).await.unwrap(), Some(info.clone()));
    assert_eq!(second.sign(&permit, b"x").await.unwrap(), store.sign(&permit, b"x").await.unwrap());
    store.destroy(&permit).await.unwrap();
    assert_eq!(store.info(&permit).await.unwrap(), None);
    assert!(second.snapshot(&permit).await.is_err(), "gone for every server");
    let owner = support::connect(&address).await;
    for table in tables(&owner).await {
        let sql = format!("SELECT count(*) FROM yore.{table} WHERE vault = $1");
        let id = info.id.bytes();
        let left: i64 = owner.query_one(&sql, &[&id.as_slice()]).await.unwrap().get(0);
        assert_eq!(left, 0, "{table}");
    }
}

#[tokio::test]
async fn another_key_opens_nothing() {
    let Some(address) = support::database().await else { return };
    let wrong = yore_store_postgres::Options {
        master: yore_store::key::MasterKey::text("08".repeat(32)),
        ..support::options(&address)
    };
    let refused = yore_store_postgres::PostgresStore::open(wrong).await;
    assert!(matches!(refused, Err(yore_store_postgres::Error::WrongKey)), "{refused:?}");
    // A role that row-level security does not hold is not served as.
    let powerful =
        yore_store_postgres::Options { role: "postgres".into(), ..support::options(&address) };
    let refused = yore_store_postgres::PostgresStore::open(powerful).await;
    assert!(matches!(refused, Err(yore_store_postgres::Error::Unfit(_))), "{refused:?}");
}

#[tokio::test]
async fn a_check_finds_what_someone_changed() {
    let Some((store, ())) = support::empty_store().await else { return };
    let address = support::database().await.unwrap();
    let scene = Scene::new(&store, &store).await;
    scene.remember(Draft::text("the code word is marzipan")).await;
    scene.remember(Draft::text("tea")).await;
    let vault = scene.owner().vault();
    let permit = support::system(vault);
    store.seal_audit(&permit, scene.tick()).await.unwrap();
    let health = store.check(&permit, false).await.unwrap();
    assert!(health.is_sound() && health.audit.checkpoints == 2, "{health:?}");
    assert_eq!(health.audit.entries, 2);
    assert!(!store.traces(&permit, "marzipan").await.unwrap().found.is_empty());
    assert!(store.traces(&permit, "liquorice").await.unwrap().found.is_empty());

    let owner = support::connect(&address).await;
    let id = vault.bytes();
    let swap = "UPDATE yore.version v SET data = w.data FROM yore.version w
        WHERE v.vault = $1 AND w.vault = $1 AND v.row = 1 AND w.row = 2";
    owner.execute(swap, &[&id.as_slice()]).await.unwrap();
    let cut = "DELETE FROM yore.audit WHERE vault = $1 AND seq = 2";
    owner.execute(cut, &[&id.as_slice()]).await.unwrap();
    let health = store.check(&permit, false).await.unwrap();
    assert_eq!(health.storage.len(), 1, "{health:?}");
    assert!(!health.audit.faults.is_empty(), "{health:?}");
}

/// Answers on a port as a PostgreSQL that encrypts, for one that does not: the handshake is real,
/// and so is the server behind it. Returns the port and the certificate.
async fn encrypting(server: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::crypto::ring::default_provider;
    use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(std::sync::Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let behind: tokio_postgres::Config = server.parse().unwrap();
    let behind = behind.get_ports()[0];
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut asked = [0; 8];
                client.read_exact(&mut asked).await.unwrap();
                assert_eq!(asked, [0, 0, 0, 8, 4, 210, 22, 47], "nothing is said in clear before");
                client.write_all(b"S").await.unwrap();
                let Ok(mut client) = acceptor.accept(client).await else { return };
                let mut server =
                    tokio::net::TcpStream::connect(("127.0.0.1", behind)).await.unwrap();
                // Either side may go first.
                drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
            });
        }
    });
    (port, made.cert.pem())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_elsewhere_is_believed_by_its_certificate_alone() {
    let Some(address) = support::database().await else { return };
    let (port, certificate) = encrypting(&address).await;
    let file = std::env::temp_dir().join(format!("yore-root-{}.pem", std::process::id()));
    std::fs::write(&file, certificate).unwrap();
    let name = address.rsplit_once('/').unwrap().1;
    let at = |host: &str, query: &str| format!("postgres://postgres@{host}:{port}/{name}?{query}");
    let root = format!("sslrootcert={}", file.display());
    let open = async |address: String| {
        yore_store_postgres::PostgresStore::open(support::options(&address)).await
    };
    for mode in ["require", "verify-full"] {
        let store = open(at("localhost", &format!("sslmode={mode}&{root}"))).await.unwrap();
        let scene = Scene::new(&store, &store).await;
        scene.remember(Draft::text("tea")).await;
        assert_eq!(scene.find("tea", &Default::default()).await, ["tea"]);
    }
    // It is not the host that the certificate names, or not a certificate of the roots.
    let refused = open(at("127.0.0.1", &format!("sslmode=verify-full&{root}"))).await;
    assert!(matches!(refused, Err(yore_store_postgres::Error::Postgres(_))), "{refused:?}");
    let refused = open(at("localhost", "sslmode=require")).await;
    assert!(refused.is_err(), "{refused:?}");
    // Of several hosts, one that is there and takes writes.
    let several = format!(
        "postgres://postgres@localhost:1,localhost:{port}/{name}\
         ?target_session_attrs=read-write&sslmode=verify-full&{root}"
    );
    open(several).await.unwrap();
    std::fs::remove_file(&file).unwrap();
}
