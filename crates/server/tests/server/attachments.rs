use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use yore_client::api::{self, Attached};
use yore_client::input;
use yore_domain::BlobHash;

use crate::support::{Server, exchange};

fn pieces(whole: &[u8]) -> impl futures::Stream<Item = std::io::Result<Bytes>> + 'static {
    let parts: Vec<Bytes> = whole.chunks(100_003).map(Bytes::copy_from_slice).collect();
    stream::iter(parts).map(Ok)
}

#[tokio::test]
async fn an_attachment_goes_in_and_comes_out_in_pieces() {
    let server = Server::start().await;
    let client = server.client();
    let whole: Vec<u8> = (0..5_000_000u32).map(|n| (n % 253) as u8).collect();
    let attached = client.attach(pieces(&whole)).await.unwrap();
    let Attached { blob, size } = attached;
    assert_eq!((blob, size), (BlobHash::of(&whole), whole.len() as u64));
    let unnamed = client.attachment(blob).await.err().unwrap();
    assert_eq!(unnamed.refusal().unwrap().status, 404, "no message names it");

    let said: input::Converse = serde_json::from_value(serde_json::json!({
        "conversation": {
            "id": "6f1f0a52-6c5f-4b0e-9d8f-3f6b3c1a2b4d", "platform": "test",
            "created": 0, "updated": 0, "scope": { "visibility": "private" }, "governance": {},
        },
        "messages": [{
            "id": "6f1f0a52-6c5f-4b0e-9d8f-3f6b3c1a2b4e", "role": "user", "at": 0,
            "content": "see this", "text": "see this",
            "attachments": [{ "filename": "a", "media_type": "image/png", "blob": blob }],
        }],
    }))
    .unwrap();
    client.call::<api::Converse>(said).await.unwrap();
    let read: Vec<Bytes> = client.attachment(blob).await.unwrap().try_collect().await.unwrap();
    assert!(read.len() > 1, "piece by piece");
    assert!(read.concat() == whole);

    let bare = yore_client::Client::new(server.target()).unwrap();
    assert_eq!(bare.attachment(blob).await.err().unwrap().refusal().unwrap().status, 401);
    assert_eq!(bare.attach(pieces(b"x")).await.unwrap_err().refusal().unwrap().status, 401);
    let (status, text) = server.get("/api/v1/attachment/nonsense").await;
    assert_eq!(status, 400, "{text}");
    server.end().await;
}

#[tokio::test]
async fn an_attachment_that_is_too_large_is_refused_before_it_is_read() {
    let server = Server::start_with(|layers| layers.set("limits.attachment", 1000)).await;
    let token = server.token.expose();
    let head = format!(
        "POST /api/v1/attachment HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Length: 1001\r\n\r\n"
    );
    let (status, text) = exchange(server.http(), head.as_bytes()).await;
    assert_eq!(status, 413, "{text}");
    // It does not say how long it will be.
    let error = server.client().attach(pieces(&[7; 5000])).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().status, 413);
    let fits = server.client().attach(pieces(&[7; 1000])).await.unwrap();
    assert_eq!(fits.size, 1000);
    server.end().await;
}

#[tokio::test]
async fn the_api_describes_itself_to_anyone() {
    let server = Server::start().await;
    let (status, text) = server.get(yore_client::openapi::PATH).await;
    assert_eq!(status, 200, "{text}");
    let body = text.split_once("\r\n\r\n").unwrap().1;
    let document: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(document, yore_client::openapi::document());
    server.end().await;
}
