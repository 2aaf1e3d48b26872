-- One vault. Times are microseconds since 1970; ids are 16 bytes; `data` is the value as JSON.

CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Everything a lens looks at, once per distinct value. A lens selects class ids; rows carry one.
CREATE TABLE class (id INTEGER PRIMARY KEY, data TEXT NOT NULL UNIQUE);

CREATE TABLE memory (
    row INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    head INTEGER NOT NULL,               -- number of the newest version
    head_row INTEGER NOT NULL,           -- its row in version
    first_row INTEGER NOT NULL,          -- the row of the first version
    class INTEGER NOT NULL REFERENCES class (id),
    status INTEGER NOT NULL,             -- 0 active 1 candidate 2 quarantined 3 tombstoned 4 erased
    kind INTEGER NOT NULL,
    since INTEGER NOT NULL,
    created INTEGER NOT NULL,            -- time.created of the head
    ends INTEGER,                        -- retention or expiry, whichever is first
    statement TEXT,                      -- digest of what it says, found through the indexes; NULL unless live
    legal_hold INTEGER NOT NULL DEFAULT 0,
    recalled INTEGER,
    recalls INTEGER NOT NULL DEFAULT 0,
    followed INTEGER NOT NULL DEFAULT 0,
    overridden INTEGER NOT NULL DEFAULT 0,
    ignored INTEGER NOT NULL DEFAULT 0,
    contradicted INTEGER NOT NULL DEFAULT 0,
    demoted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX memory_by_class ON memory (class, created, id);
CREATE INDEX memory_by_end ON memory (ends) WHERE ends IS NOT NULL;

-- Neither memories nor versions are ever deleted, so their rows are never given out again.
CREATE TABLE version (
    row INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    memory INTEGER NOT NULL REFERENCES memory (row),
    number INTEGER NOT NULL,
    class INTEGER NOT NULL REFERENCES class (id),
    status INTEGER NOT NULL,
    recorded INTEGER NOT NULL,
    entry INTEGER NOT NULL,              -- the audit entry it was written with
    salt BLOB,                           -- NULL once erased: the audit digest then proves nothing
    data TEXT NOT NULL,
    tokens BLOB,                         -- what rebuilds its place in the indexes without a
    model TEXT,                          -- model: tokens and the static vector; NULL when it
    scale REAL,                          -- is not to be found
    statics BLOB
);
-- Most memories have one version, which `first_row` names: an index entry less to write for each.
CREATE UNIQUE INDEX version_later ON version (memory, number) WHERE number > 1;

CREATE TABLE relation (
    memory INTEGER NOT NULL REFERENCES memory (row),
    kind TEXT NOT NULL,
    target TEXT NOT NULL
);
CREATE INDEX relation_by_memory ON relation (memory);
CREATE INDEX relation_by_target ON relation (target);

CREATE TABLE alias (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,               -- 0 memory 1 version 2 conversation
    target BLOB NOT NULL,
    number INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;
CREATE INDEX alias_by_target ON alias (target);

CREATE TABLE conversation (
    row INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    class INTEGER NOT NULL REFERENCES class (id),
    platform TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    messages INTEGER NOT NULL DEFAULT 0,
    data TEXT NOT NULL
);
CREATE INDEX conversation_by_class ON conversation (class, updated, id);

CREATE TABLE message (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversation (row),
    id BLOB NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    data TEXT NOT NULL,
    tokens BLOB,                         -- as in version
    model TEXT,
    scale REAL,
    statics BLOB,
    UNIQUE (conversation, id),
    UNIQUE (conversation, position)
);

CREATE TABLE blob (hash BLOB PRIMARY KEY, size INTEGER) WITHOUT ROWID; -- size is NULL until complete
CREATE TABLE blob_chunk (hash BLOB NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (hash, number));
CREATE TABLE blob_use (hash BLOB NOT NULL, message INTEGER NOT NULL REFERENCES message (row), PRIMARY KEY (hash, message)) WITHOUT ROWID;
CREATE INDEX blob_use_by_message ON blob_use (message);

-- Vectors of a transformer. source: 0 version 1 message.
CREATE TABLE vector (source INTEGER NOT NULL, row INTEGER NOT NULL, model TEXT NOT NULL, scale REAL NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (source, row, model)) WITHOUT ROWID;

CREATE TABLE grants (id BLOB PRIMARY KEY, agent TEXT NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE token (id BLOB PRIMARY KEY, hash TEXT NOT NULL UNIQUE, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE hold (id BLOB PRIMARY KEY, state INTEGER NOT NULL, asked INTEGER NOT NULL, agent TEXT, data TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX hold_by_state ON hold (state, asked);
CREATE TABLE rule (name TEXT PRIMARY KEY, position INTEGER NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE profile (user TEXT NOT NULL, version INTEGER NOT NULL, recorded INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (user, version)) WITHOUT ROWID;
CREATE TABLE procedure (memory BLOB PRIMARY KEY, name TEXT NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE job (id BLOB PRIMARY KEY, kind TEXT NOT NULL, state INTEGER NOT NULL, created INTEGER NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE operation (caller TEXT NOT NULL, id TEXT NOT NULL, fingerprint TEXT NOT NULL, result TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (caller, id)) WITHOUT ROWID;

CREATE TABLE stream (sender TEXT NOT NULL, id TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (sender, id)) WITHOUT ROWID;
CREATE TABLE frame (sender TEXT NOT NULL, stream TEXT NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (sender, stream, number));
CREATE TABLE letter (seq INTEGER PRIMARY KEY AUTOINCREMENT, inbox TEXT NOT NULL, sender TEXT NOT NULL, id TEXT NOT NULL, state INTEGER NOT NULL, data TEXT NOT NULL, UNIQUE (sender, id));
CREATE INDEX letter_by_inbox ON letter (inbox, state, seq);

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    operation TEXT NOT NULL,
    agent TEXT,
    data TEXT NOT NULL,                  -- canonical JSON of the draft, exactly what was hashed
    hash BLOB NOT NULL,
    change INTEGER NOT NULL,             -- how many changes were made by then
    changes TEXT                         -- the outbox: what this commit changed, a JSON array; NULL when nothing
);
-- Memories an entry names without writing a version of them.
CREATE TABLE audit_target (memory INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (memory, seq)) WITHOUT ROWID;
CREATE TABLE checkpoint (seq INTEGER PRIMARY KEY, data TEXT NOT NULL);
