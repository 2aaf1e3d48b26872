//! The few files that pages load, inside the binary.

use std::io::Write;
use std::sync::LazyLock;

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use yore_canon::hash::Sha256;

struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const ASSETS: [Asset; 4] = [
    Asset {
        name: "app.css",
        kind: "text/css; charset=utf-8",
        bytes: include_bytes!("../assets/app.css"),
    },
    Asset {
        name: "app.js",
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../assets/app.js"),
    },
    Asset {
        name: "htmx.js",
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../assets/htmx.min.js"),
    },
    Asset { name: "icon.svg", kind: "image/svg+xml", bytes: include_bytes!("../assets/icon.svg") },
];

/// A file as it is sent: plain, and packed where that makes it smaller.
struct Ready {
    address: String,
    tag: HeaderValue,
    packed: Option<Packed>,
}

struct Packed {
    bytes: Bytes,
    tag: HeaderValue,
}

/// All files, packed once. Pages are never packed: their length would tell of the secrets in them
/// to who can have words of his own beside those (BREACH). These files hold none.
static READY: LazyLock<Vec<Ready>> = LazyLock::new(|| ASSETS.iter().map(ready).collect());

fn ready(asset: &Asset) -> Ready {
    let mark = Sha256::of(asset.bytes).to_hex();
    let mark = &mark[..12];
    let tag = |more: &str| {
        HeaderValue::from_str(&format!("\"{mark}{more}\"")).expect("hex digits are a header value")
    };
    let packed = packed(asset.bytes).filter(|packed| packed.len() < asset.bytes.len());
    Ready {
        address: format!("/app/assets/{}?v={mark}", asset.name),
        tag: tag(""),
        packed: packed.map(|bytes| Packed { bytes: bytes.into(), tag: tag("-gzip") }),
    }
}

fn packed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes).ok()?;
    packer.finish().ok()
}

/// The address of a file, with a mark that changes with what the file says.
pub(crate) fn url(name: &str) -> &'static str {
    let place = ASSETS.iter().position(|asset| asset.name == name);
    place.and_then(|place| READY.get(place)).map_or("", |ready| ready.address.as_str())
}

/// Hands a file out. They are no secret.
pub(crate) async fn serve(Path(file): Path<String>, headers: HeaderMap) -> Response {
    let found = ASSETS.iter().zip(READY.iter()).find(|(asset, _)| asset.name == file);
    let Some((asset, ready)) = found else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let packed = ready.packed.as_ref().filter(|_| accepts_gzip(&headers));
    let tag = packed.map_or(&ready.tag, |packed| &packed.tag);
    let mut response = if is_known(&headers, tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let kind = [(CONTENT_TYPE, HeaderValue::from_static(asset.kind))];
        match packed {
            Some(packed) => {
                let gzip = [(CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
                (kind, gzip, packed.bytes.clone()).into_response()
            }
            None => (kind, asset.bytes).into_response(),
        }
    };
    let head = response.headers_mut();
    head.insert(ETAG, tag.clone());
    head.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    if ready.packed.is_some() {
        head.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }
    response
}

/// Whether the browser has this very form of the file already.
fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
    let mut known = known.flat_map(|line| line.split(',')).map(str::trim);
    // Comparison is weak here (RFC 9110, 13.1.2).
    known.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one).as_bytes() == tag)
}

/// Whether gzip is welcome, and no less than the plain form (RFC 9110, 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let (mut gzip, mut plain, mut any) = (None, None, None);
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    for one in lines.flat_map(|line| line.split(',')) {
        let mut parts = one.split(';').map(str::trim);
        let weight = weight(parts.nth(1));
        match one.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => gzip = Some(weight),
            "identity" => plain = Some(weight),
            "*" => any = Some(weight),
            _ => {}
        }
    }
    let gzip = gzip.or(any).unwrap_or(0);
    gzip > 0 && gzip >= plain.unwrap_or(0)
}

/// A weight in thousandths; what is none counts for nothing.
fn weight(parameter: Option<&str>) -> u16 {
    let Some(parameter) = parameter else { return 1000 };
    let value = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
    let (whole, part) =
        value.map_or(("", ""), |value| value.split_once('.').unwrap_or((value, "")));
    if part.len() > 3 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
        return 0;
    }
    match whole {
        "1" => 1000,
        "0" => format!("{part:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    const HTMX: &str = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717";

    #[test]
    fn what_others_wrote_is_unchanged() {
        let htmx = ASSETS.iter().find(|asset| asset.name == "htmx.js").unwrap();
        assert_eq!(Sha256::of(htmx.bytes).to_hex(), HTMX);
        assert!(include_str!("../assets/README.md").contains(HTMX));
    }

    #[test]
    fn all_files_together_leave_room_for_a_page() {
        let sent = |(asset, ready): (&Asset, &Ready)| {
            ready.packed.as_ref().map_or(asset.bytes.len(), |packed| packed.bytes.len())
        };
        let all: usize = ASSETS.iter().zip(READY.iter()).map(sent).sum();
        assert!(all < 30_000, "{all} bytes");
    }

    #[test]
    fn packed_files_unpack_to_themselves() {
        for (asset, ready) in ASSETS.iter().zip(READY.iter()) {
            let Some(packed) = &ready.packed else { continue };
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(&packed.bytes[..]).read_to_end(&mut plain).unwrap();
            assert_eq!(plain, asset.bytes, "{}", asset.name);
            assert_ne!(packed.tag, ready.tag, "each form has a tag of its own");
        }
    }

    #[test]
    fn gzip_is_sent_to_who_wants_it() {
        let accepts = |line: &str| {
            accepts_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, line.parse().unwrap())]))
        };
        for line in [
            "gzip",
            "gzip, deflate, br, zstd",
            "br, GZIP;q=0.1",
            "x-gzip",
            "*",
            "gzip;q=1.000 , identity;q=0.5",
            "deflate, gzip ; q=0.001",
            "identity;q=0, *",
        ] {
            assert!(accepts(line), "{line}");
        }
        for line in [
            "",
            "identity",
            "br",
            "gzip;q=0",
            "gzip;q=0.000, *",
            "*;q=0",
            "gzip;q=0.2, identity",
            "gzip;q=2",
            "gzip;q=0.0001",
            "gzip;q=-1",
            "gzip;q=",
            "gzipped",
        ] {
            assert!(!accepts(line), "{line}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()), "who says nothing gets it plain");
    }
}
