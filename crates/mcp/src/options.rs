//! What whoever assembles a server decides about MCP.

/// How tools are called in the list. A call is understood in either spelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolNames {
    /// `ump.recall`: the names the protocols reserve.
    #[default]
    Dotted,
    /// `ump_recall`: for hosts that refuse a dot.
    Underscore,
}

impl ToolNames {
    /// Returns what stands between a protocol and its operation.
    #[must_use]
    pub const fn separator(self) -> char {
        match self {
            Self::Dotted => '.',
            Self::Underscore => '_',
        }
    }
}

/// What whoever assembles a server decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// The spelling over stdio; over HTTP each spelling has its own path.
    pub names: ToolNames,
    /// Host names that are answered to, besides those of the loopback.
    pub hosts: Vec<String>,
    /// Web origins that may call, besides the server's own.
    pub origins: Vec<String>,
    /// Servers that issue tokens for this one, for clients that look for them.
    pub authorization_servers: Vec<String>,
    /// Whether this server is one of them.
    pub issues_tokens: bool,
    /// Whether a person is asked before something is erased, where the client can ask.
    pub confirm_erasure: bool,
    /// Whether the conformance suite's fixtures are offered.
    #[cfg(feature = "conformance-fixtures")]
    pub fixtures: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            names: ToolNames::Dotted,
            hosts: Vec::new(),
            origins: Vec::new(),
            authorization_servers: Vec::new(),
            issues_tokens: false,
            confirm_erasure: true,
            #[cfg(feature = "conformance-fixtures")]
            fixtures: false,
        }
    }
}
