//! The routes that no type of the native API describes.

/// The routes of one protocol.
pub(super) struct Surface {
    pub(super) tag: &'static str,
    pub(super) about: &'static str,
    /// Where the same routes lie.
    pub(super) prefixes: &'static [&'static str],
    pub(super) lines: &'static [Line],
}

/// One method of one path.
pub(super) struct Line {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    /// The operation of a dialect whose schemas are those of the request and the answer.
    pub(super) schema: Option<(&'static str, &'static str)>,
    /// What may stand in the query.
    pub(super) query: &'static [&'static str],
    pub(super) body: Body,
    /// What the answer is.
    pub(super) answers: &'static str,
    /// Whether it needs no credential.
    pub(super) open: bool,
}

/// What a request carries.
#[derive(Clone, Copy)]
pub(super) enum Body {
    None,
    Json,
    Form,
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

const fn line(method: &'static str, path: &'static str, summary: &'static str) -> Line {
    Line {
        method,
        path,
        summary,
        schema: None,
        query: &[],
        body: Body::None,
        answers: JSON,
        open: false,
    }
}

const fn get(path: &'static str, summary: &'static str) -> Line {
    line("get", path, summary)
}

const fn post(path: &'static str, summary: &'static str) -> Line {
    line("post", path, summary).with(Body::Json)
}

const fn put(path: &'static str, summary: &'static str) -> Line {
    line("put", path, summary).with(Body::Json)
}

const fn patch(path: &'static str, summary: &'static str) -> Line {
    line("patch", path, summary).with(Body::Json)
}

const fn delete(path: &'static str, summary: &'static str) -> Line {
    line("delete", path, summary)
}

impl Line {
    const fn with(self, body: Body) -> Self {
        Self { body, ..self }
    }

    const fn like(self, dialect: &'static str, name: &'static str) -> Self {
        Self { schema: Some((dialect, name)), ..self }
    }

    const fn asking(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    const fn answering(self, answers: &'static str) -> Self {
        Self { answers, ..self }
    }

    const fn open(self) -> Self {
        Self { open: true, ..self }
    }
}

pub(super) const SURFACES: [Surface; 8] = [
    Surface {
        tag: "server",
        about: "The server itself",
        prefixes: &[""],
        lines: &[
            get("/health", "Whether the process lives").open(),
            get("/ready", "Whether requests are served").open(),
            get("/metrics", "Figures for a collector")
                .answering("application/openmetrics-text")
                .open(),
            get("/.well-known/ump.json", "Where UMP is spoken").open(),
            get("/openapi.json", "This document").open(),
            get("/api/v1/openapi.json", "The native API alone").open(),
        ],
    },
    Surface {
        tag: "oauth",
        about: "The authorisation server for agents (OAuth 2.1)",
        prefixes: &[""],
        lines: &[
            get("/.well-known/oauth-authorization-server", "What the authorisation server offers")
                .open(),
            get("/.well-known/oauth-protected-resource", "Who lets agents in").open(),
            get("/.well-known/oauth-protected-resource/mcp", "Who lets agents in").open(),
            get("/.well-known/oauth-protected-resource/mcp/compat", "Who lets agents in").open(),
            post("/oauth/register", "Registers a client").open(),
            post("/oauth/token", "Redeems a code, or renews a token").with(Body::Form).open(),
        ],
    },
    Surface {
        tag: "mcp",
        about: "The Model Context Protocol over Streamable HTTP: JSON-RPC, no REST",
        prefixes: &["/mcp", "/mcp/compat"],
        lines: &[
            post("", "Takes a message of JSON-RPC").answering(EVENTS),
            get("", "Follows what the server says by itself").answering(EVENTS),
            delete("", "Ends a session"),
        ],
    },
    Surface {
        tag: "ump",
        about: "The Universal Memory Protocol",
        prefixes: &["/ump", "/ump/v0.1"],
        lines: &[
            get("/capabilities", "What the server can do").like("ump", "capabilities"),
            post("/capabilities", "What the server can do").like("ump", "capabilities"),
            post("/recall", "Finds memories").like("ump", "recall"),
            post("/remember", "Remembers").like("ump", "remember"),
            post("/revise", "Makes a new version").like("ump", "revise"),
            post("/forget", "Forgets").like("ump", "forget"),
            post("/feedback", "Says how a memory fared").like("ump", "feedback"),
            post("/export", "Takes memories out"),
            post("/audit", "Reads the audit chain").like("ump", "audit"),
            get("/audit/verify", "Checks the audit chain").like("ump", "audit.verify"),
            get("/memory/{id}", "Gives one memory").like("ump", "get"),
            get("/subscribe", "Follows changes")
                .asking(&["owner", "user", "project", "agent", "session", "visibility"])
                .answering(EVENTS),
        ],
    },
    Surface {
        tag: "oamp",
        about: "The Open Agent Memory Protocol",
        prefixes: &["/v1"],
        lines: &[
            get("/knowledge", "Lists entries")
                .like("oamp", "list")
                .asking(&["user_id", "category", "query", "limit", "cursor", "as_of"]),
            post("/knowledge", "Makes an entry").like("oamp", "create"),
            get("/knowledge/{id}", "Gives an entry").like("oamp", "get").asking(&["as_of"]),
            patch("/knowledge/{id}", "Changes an entry").like("oamp", "patch"),
            delete("/knowledge/{id}", "Erases an entry").like("oamp", "delete"),
            post("/user-model", "Keeps the model of a user").like("oamp", "put_user_model"),
            get("/user-model/{user_id}", "Gives the model of a user").like("oamp", "user_model"),
            delete("/user-model/{user_id}", "Erases the model of a user"),
            post("/export", "Takes everything out"),
            post("/import", "Brings entries in").like("oamp", "import"),
            get("/capabilities", "What the server can do").like("oamp", "capabilities"),
            post("/admin/keys/rotate", "Makes a new key"),
            get("/admin/audit", "Reads the audit chain").asking(&["limit", "cursor"]),
            get("/stream", "Follows changes").answering(EVENTS),
        ],
    },
    Surface {
        tag: "memorywire",
        about: "memorywire: five operations, and governance",
        prefixes: &["/memorywire/v0"],
        lines: &[
            post("/remember", "Remembers").like("memorywire", "remember"),
            post("/recall", "Finds memories").like("memorywire", "recall"),
            post("/forget", "Forgets").like("memorywire", "forget"),
            post("/merge", "Merges memories").like("memorywire", "merge"),
            post("/expire", "Ends what is old").like("memorywire", "expire"),
            post("/recover", "Takes back what a poisoned agent did").like("memorywire", "recover"),
            post("/restore", "Brings something forgotten back").like("memorywire", "restore"),
            post("/list", "Lists memories"),
            post("/neighbours", "Lists what is linked to a memory"),
            post("/procedures/{move}", "Runs the state machine of a procedure"),
            get("/schemas/{*name}", "Gives a JSON Schema of the protocol")
                .answering("application/schema+json")
                .open(),
            post("/stores/{what}", "Asks about the stores beside the vault"),
            post("/governance/{what}", "Looks after approvals, rules and intents"),
            get("/health", "How the stores are").open(),
        ],
    },
    Surface {
        tag: "omp",
        about: "The Open Memory Protocol",
        prefixes: &["", "/omp/v2"],
        lines: &OMP,
    },
    Surface {
        tag: "uamp",
        about: "Signed messages between agents; sockets and gRPC are not REST",
        prefixes: &[""],
        lines: &[
            post("/v1/messages", "Takes a signed message"),
            get("/v1/stream/{id}", "Follows the answer to a message").asking(&["after"]),
            get("/uamp/1/inbox", "Gives the letters of an agent as they come").asking(&["did"]),
            get("/.well-known/agent-manifest.json", "Who the agent is").open(),
            get("/.well-known/agent-hub.json", "Which agents are here").open(),
            get("/.well-known/agent-card.json", "The agent in the words of A2A").open(),
            get("/.well-known/did.json", "The keys of the server").open(),
        ],
    },
];

/// The routes of the Open Memory Protocol; what they take and give is said in its own crate.
const OMP: [Line; 51] = [
    get("/conversations", "Lists conversations").asking(&[
        "limit",
        "cursor",
        "platform",
        "model",
        "tags",
        "from",
        "to",
        "conversation_id",
        "include",
        "risk_level",
        "human_review",
    ]),
    post("/conversations", "Stores a conversation").asking(&["merge", "strict_ids"]),
    get("/conversations/{id}", "Gives a conversation"),
    patch("/conversations/{id}", "Changes what is said about a conversation"),
    delete("/conversations/{id}", "Erases a conversation").asking(&["dry_run"]),
    post("/conversations/{id}/messages", "Adds messages").asking(&["strict_ids"]),
    get("/conversations/{id}/messages/{message}", "Gives a message"),
    delete("/conversations/{id}/messages/{message}", "Erases a message").asking(&["dry_run"]),
    get("/attachments/{blob}", "Gives an attachment"),
    get("/memories", "Lists memory records").asking(&[
        "limit",
        "cursor",
        "record_type",
        "type",
        "active",
        "expired",
        "platform",
        "model",
        "tags",
        "from",
        "to",
        "conversation_id",
        "risk_level",
        "human_review",
    ]),
    post("/memories", "Stores a memory record"),
    get("/memories/{id}", "Gives a memory record"),
    put("/memories/{id}", "Stores a memory record as another host has it").asking(&["propose"]),
    patch("/memories/{id}", "Changes a memory record"),
    delete("/memories/{id}", "Erases a memory record").asking(&["dry_run", "propose"]),
    get("/search", "Searches conversations and memories").asking(&[
        "q",
        "type",
        "semantic",
        "include",
        "limit",
        "cursor",
        "platform",
        "model",
        "tags",
        "from",
        "to",
        "conversation_id",
    ]),
    get("/changes", "Lists what changed since").asking(&["cursor", "limit"]),
    post("/backup", "Begins to pack an archive"),
    get("/backup/schedules", "How often copies are made"),
    post("/backup/schedules", "Decides how often copies are made"),
    get("/backup/{job}", "How far an archive is"),
    get("/backup/{job}/download", "Gives the archive"),
    post("/restore", "Begins to read an archive").asking(&["password", "dry_run"]),
    get("/restore/{job}", "How far the reading is"),
    post("/import/{name}", "Begins to read the export of a platform").asking(&[
        "filename",
        "dry_run",
        "proposals",
    ]),
    get("/import/{name}", "How far the reading is"),
    post("/deletions", "Deletes what a preview showed"),
    post("/deletions/preview", "Shows what a deletion would take"),
    get("/admin/grants", "Lists delegates"),
    post("/admin/grants", "Lets a delegate in"),
    delete("/admin/grants/{id}", "Takes a delegate's grant back"),
    post("/admin/holds", "Protects from deletion, or releases"),
    get("/admin/audit", "Reads the audit chain").asking(&[
        "limit",
        "cursor",
        "operation",
        "agent",
        "from",
        "to",
    ]),
    get("/admin/tenants", "Lists tenants"),
    post("/admin/tenants", "Makes a tenant"),
    get("/admin/tenants/{tenant}/users", "Lists the users of a tenant"),
    post("/admin/tenants/{tenant}/users", "Makes a user"),
    get("/admin/tenants/{tenant}/users/{user}", "Gives a user"),
    delete("/admin/tenants/{tenant}/users/{user}", "Removes a user whose vault is empty"),
    get("/admin/retention", "How long things are kept"),
    post("/admin/retention", "Decides how long things are kept"),
    get("/admin/reports/models", "What each model did"),
    get("/admin/webhooks", "Lists who is told of changes"),
    post("/admin/webhooks", "Has somebody told of changes"),
    delete("/admin/webhooks/{id}", "Stops telling"),
    patch("/admin/webhooks/{id}", "Switches the telling off or on"),
    post("/admin/keys/rotate", "Makes a new key").with(Body::None),
    get("/admin/guardianship", "Whether the vault is a child's"),
    post("/admin/guardianship", "Says whether the vault is a child's"),
    post("/admin/guardianship/stop", "Stops that more is stored"),
    get("/.well-known/omp", "What the server can do").open(),
];
