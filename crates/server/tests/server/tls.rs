use std::sync::Arc;

use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use yore_client::{Client, Target};

use crate::support::{Server, layers};

async fn handshake(
    server: &Server,
    version: &'static SupportedProtocolVersion,
    protocol: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(server.note.ca.as_ref().unwrap()).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(server.note.https.unwrap()).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

#[tokio::test]
async fn tls_1_3_is_spoken_and_1_2_refused() {
    let server = Server::start().await;
    let stream = handshake(&server, &rustls::version::TLS13, b"http/1.1").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let error = handshake(&server, &rustls::version::TLS12, b"http/1.1").await.unwrap_err();
    assert!(error.to_string().to_lowercase().contains("version"), "{error}");
    server.end().await;
}

#[tokio::test]
async fn http_2_is_spoken_under_the_same_checks() {
    let server = Server::start().await;
    let stream = handshake(&server, &rustls::version::TLS13, b"h2").await.unwrap();
    let io = TokioIo::new(stream);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    for (host, expected) in [("localhost", 200), ("evil.example", 403)] {
        let request = hyper::Request::get(format!("https://{host}/health"))
            .body(Empty::<bytes::Bytes>::new())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status().as_u16(), expected, "{host}");
        response.into_body().collect().await.unwrap();
    }
    server.end().await;
}

/// What the server answers over HTTP/2.
pub(crate) async fn over_http_2(
    server: &Server,
    path: &str,
) -> hyper::Response<hyper::body::Incoming> {
    let stream = handshake(server, &rustls::version::TLS13, b"h2").await.unwrap();
    let io = TokioIo::new(stream);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::get(format!("https://localhost{path}"));
    sender.send_request(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn a_client_trusts_only_the_authority_it_was_given() {
    let (one, two) = (Server::start().await, Server::start().await);
    Client::connect(one.tls_target()).await.unwrap();
    let crossed = match one.tls_target() {
        Target::Https { authority, .. } => Target::Https { authority, ca: two.note.ca.clone() },
        Target::Socket(_) | Target::Http(_) => unreachable!("the target is TLS"),
    };
    let error = Client::connect(crossed).await.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    one.end().await;
    two.end().await;
}

#[tokio::test]
async fn plain_http_is_never_bound_where_others_listen() {
    let place = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let error = yore_server::Config::load(layers(&place).set("listen.http", address));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("refusing plain HTTP"), "{error}");
    }
    // A configuration changed after it was read is checked again.
    let mut config = yore_server::Config::load(layers(&place)).unwrap();
    config.listen.http = yore_server::config::Bind::At(([0, 0, 0, 0], 0).into());
    let error = yore_server::Host::open(config).await.unwrap_err();
    assert!(matches!(error, yore_server::Error::Exposed(_)), "{error}");
}
