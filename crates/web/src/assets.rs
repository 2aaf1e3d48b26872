//! The few files that pages load, inside the binary.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
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

/// The addresses of all files, each with a mark that changes with what the file says.
static ADDRESSES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let address = |asset: &Asset| {
        let mark = Sha256::of(asset.bytes).to_hex();
        format!("/app/assets/{}?v={}", asset.name, &mark[..12])
    };
    ASSETS.iter().map(address).collect()
});

/// The address of a file.
pub(crate) fn url(name: &str) -> &'static str {
    let place = ASSETS.iter().position(|asset| asset.name == name);
    place.and_then(|place| ADDRESSES.get(place)).map_or("", String::as_str)
}

/// Hands a file out. They are no secret.
pub(crate) async fn serve(Path(file): Path<String>) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == file) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (head, asset.bytes).into_response()
}

#[cfg(test)]
mod tests {
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
        let all: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(all < 85_000, "{all} bytes");
    }
}
