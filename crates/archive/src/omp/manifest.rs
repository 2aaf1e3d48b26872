//! The manifest of an archive.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use yore_domain::Timestamp;

use super::checksum::Method;
use crate::{Error, Result};

/// What an archive says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    pub omp_version: String,
    /// When it was written.
    pub export_timestamp: String,
    /// The platform, or `multi-platform`.
    pub source_platform: String,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// How much it holds.
    pub counts: Counts,
    /// The first and the last time in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_range: Option<Range>,
    /// The platforms in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platforms_included: Option<Vec<String>>,
    /// `sha256:` and 64 digits.
    pub checksum: String,
    /// How that was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_checksum_method: Option<String>,
    /// What else it says.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// How much an archive holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Conversations.
    pub conversations: u64,
    /// Messages on active paths.
    pub messages: u64,
    /// Memories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memories: Option<u64>,
    /// Files in `attachments/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<u64>,
    /// Messages on branches that were left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_branch_messages: Option<u64>,
}

/// The first and the last time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The first.
    pub earliest: String,
    /// The last.
    pub latest: String,
}

impl Manifest {
    /// Reads a manifest and checks what does not depend on the files.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let wrong = |reason: String| Error::archive("manifest", reason);
        let limits = yore_canon::json::Limits { bytes: 1 << 20, depth: 32, nodes: 100_000 };
        let object = yore_canon::json::parse_object(bytes, limits)
            .map_err(|error| wrong(format!("manifest.json: {error}")))?;
        let version = object.get("omp_version").and_then(Value::as_str).unwrap_or_default();
        if version != "2" && !version.starts_with("2.") {
            let shown: String = version.chars().take(20).collect();
            return Err(Error::archive("version", format!("{shown:?} is not a version 2")));
        }
        let manifest: Self = serde_json::from_value(Value::Object(object))
            .map_err(|error| wrong(format!("manifest.json: {error}")))?;
        manifest
            .checksum
            .parse::<yore_canon::hash::Sha256>()
            .map_err(|_| wrong("checksum must be sha256: and 64 lower-case digits".to_owned()))?;
        if crate::time::text(&manifest.export_timestamp).is_none() {
            return Err(wrong("export_timestamp is not a time".to_owned()));
        }
        if let Some(method) = manifest.x_checksum_method.as_deref()
            && method != Method::NAME
        {
            return Err(wrong(format!("checksum method {method:?} is not known")));
        }
        Ok(manifest)
    }

    /// Returns when the archive was written.
    #[must_use]
    pub fn exported(&self) -> Option<Timestamp> {
        crate::time::text(&self.export_timestamp)
    }
}
