-- Every vault in one set of tables. A row says whose it is, and row-level security shows it to
-- nobody who does not say the same. Times are microseconds since 1970, ids are 16 bytes, `data`
-- is the value as JSON under the vault's own key, and what is looked up by a name is found by a
-- keyed digest of it. What is in clear is in docs/threat-model.md.

-- Where a vault's numbers stand. A commit locks the row, so commits of one vault follow each other.
CREATE TABLE tail (
    vault bytea PRIMARY KEY,
    seq bigint NOT NULL DEFAULT 0,           -- the last audit entry, its time and its hash
    at bigint NOT NULL DEFAULT 0,
    hash bytea,
    change bigint NOT NULL DEFAULT 0,        -- the last change
    memory bigint NOT NULL DEFAULT 0,        -- the last rows given out; none is given out again
    version bigint NOT NULL DEFAULT 0,
    conversation bigint NOT NULL DEFAULT 0,
    message bigint NOT NULL DEFAULT 0,
    letter bigint NOT NULL DEFAULT 0,
    class integer NOT NULL DEFAULT 0,
    grants bigint NOT NULL DEFAULT 0,        -- how often grants and rules changed
    rules bigint NOT NULL DEFAULT 0,
    books bigint NOT NULL DEFAULT 0          -- how often anything that judgements rest on changed
);

CREATE TABLE setting (vault bytea NOT NULL, name bytea NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, name));

-- Everything a lens looks at, once per distinct value. A lens selects class ids; rows carry one.
CREATE TABLE class (vault bytea NOT NULL, id integer NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, id));

CREATE TABLE memory (
    vault bytea NOT NULL,
    row bigint NOT NULL,
    id bytea NOT NULL,
    head integer NOT NULL,                   -- number of the newest version
    head_row bigint NOT NULL,
    class integer NOT NULL,
    status smallint NOT NULL,                -- 0 active 1 candidate 2 quarantined 3 tombstoned 4 erased
    kind smallint NOT NULL,
    session bigint NOT NULL DEFAULT 0,       -- keyed number of the head's session while it is live
    since bigint NOT NULL,
    created bigint NOT NULL,
    ends bigint,
    statement bytea,                         -- keyed digest of what it says; NULL unless live
    legal_hold boolean NOT NULL DEFAULT false,
    recalled bigint,
    recalls bigint NOT NULL DEFAULT 0,
    followed bigint NOT NULL DEFAULT 0,
    overridden bigint NOT NULL DEFAULT 0,
    ignored bigint NOT NULL DEFAULT 0,
    contradicted bigint NOT NULL DEFAULT 0,
    demoted boolean NOT NULL DEFAULT false,
    PRIMARY KEY (vault, row),
    UNIQUE (vault, id)
) PARTITION BY HASH (vault);
CREATE INDEX memory_by_class ON memory (vault, class, created, id);
CREATE INDEX memory_by_time ON memory (vault, created, id);
CREATE INDEX memory_by_end ON memory (vault, ends) WHERE ends IS NOT NULL;
CREATE INDEX memory_by_statement ON memory (vault, statement) WHERE statement IS NOT NULL;
CREATE INDEX memory_by_session ON memory (vault, session) WHERE session <> 0;

CREATE TABLE version (
    vault bytea NOT NULL,
    row bigint NOT NULL,
    id bytea NOT NULL,
    memory bigint NOT NULL,
    number integer NOT NULL,
    class integer NOT NULL,
    status smallint NOT NULL,
    recorded bigint NOT NULL,
    valid_from bigint NOT NULL,
    valid_to bigint,
    entry bigint NOT NULL,                   -- the audit entry it was written with
    salt bytea,                              -- NULL once erased: the audit digest then proves nothing
    data bytea NOT NULL,
    PRIMARY KEY (vault, row),
    UNIQUE (vault, id),
    UNIQUE (vault, memory, number)
) PARTITION BY HASH (vault);

CREATE TABLE relation (
    vault bytea NOT NULL,
    memory bigint NOT NULL,
    number integer NOT NULL,
    target bytea NOT NULL,                   -- keyed digest of the target
    data bytea NOT NULL,
    PRIMARY KEY (vault, memory, number)
);
CREATE INDEX relation_by_target ON relation (vault, target);

CREATE TABLE alias (
    vault bytea NOT NULL,
    mac bytea NOT NULL,                      -- keyed digest of namespace and name
    name bytea NOT NULL,                     -- keyed digest of the name alone
    kind smallint NOT NULL,                  -- 0 memory 1 version 2 conversation
    target bytea NOT NULL,
    number integer NOT NULL DEFAULT 0,
    data bytea NOT NULL,
    PRIMARY KEY (vault, mac)
);
CREATE INDEX alias_by_target ON alias (vault, target);
CREATE INDEX alias_by_name ON alias (vault, name);

CREATE TABLE conversation (
    vault bytea NOT NULL,
    row bigint NOT NULL,
    id bytea NOT NULL,
    class integer NOT NULL,
    updated bigint NOT NULL,
    messages bigint NOT NULL DEFAULT 0,
    data bytea NOT NULL,
    PRIMARY KEY (vault, row),
    UNIQUE (vault, id)
);
CREATE INDEX conversation_by_class ON conversation (vault, class, updated, id);

CREATE TABLE message (
    vault bytea NOT NULL,
    row bigint NOT NULL,
    conversation bigint NOT NULL,
    id bytea NOT NULL,
    position bigint NOT NULL,
    off_path boolean NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (vault, row),
    UNIQUE (vault, conversation, id),
    UNIQUE (vault, conversation, position)
) PARTITION BY HASH (vault);

CREATE TABLE blob (vault bytea NOT NULL, hash bytea NOT NULL, size bigint, PRIMARY KEY (vault, hash)); -- size is NULL until complete
CREATE TABLE blob_chunk (vault bytea NOT NULL, hash bytea NOT NULL, number integer NOT NULL, size bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, hash, number));
CREATE TABLE blob_use (vault bytea NOT NULL, hash bytea NOT NULL, message bigint NOT NULL, PRIMARY KEY (vault, hash, message));
CREATE INDEX blob_use_by_message ON blob_use (vault, message);

-- What is to be found. source: 0 version 1 message. Rows with the same live, own and seen are one
-- partition of the index: they are visible together or not at all.
CREATE TABLE document (
    vault bytea NOT NULL,
    source smallint NOT NULL,
    row bigint NOT NULL,
    home bigint NOT NULL,                    -- the row of the memory or of the conversation
    id bytea NOT NULL,
    live boolean NOT NULL,                   -- whether it is the live head of its memory, or a message
    head boolean NOT NULL,
    own integer NOT NULL,                    -- its own class
    seen integer NOT NULL,                   -- the class of its memory's head
    kind smallint NOT NULL,
    status smallint NOT NULL,
    created bigint NOT NULL,
    valid_from bigint NOT NULL,
    valid_to bigint NOT NULL,
    recorded bigint NOT NULL,
    expires bigint NOT NULL,
    session bigint NOT NULL,                 -- 0 is none
    ordinal bigint NOT NULL,                 -- the position of a message
    length integer NOT NULL,
    language smallint NOT NULL,
    scale real NOT NULL,
    statics halfvec(256) NOT NULL,           -- whole numbers from -127 to 127: dot products are exact
    data bytea NOT NULL,
    PRIMARY KEY (vault, source, row)
) PARTITION BY HASH (vault);
CREATE INDEX document_by_home ON document (vault, source, home);
CREATE INDEX document_by_session ON document (vault, source, session) WHERE session <> 0;
CREATE INDEX document_by_statics ON document USING hnsw (statics halfvec_cosine_ops);

-- Vectors of a transformer.
CREATE TABLE vector (
    vault bytea NOT NULL,
    source smallint NOT NULL,
    row bigint NOT NULL,
    model text NOT NULL,
    dims integer NOT NULL,
    scale real NOT NULL,
    value halfvec NOT NULL,
    PRIMARY KEY (vault, source, row, model)
) PARTITION BY HASH (vault);
CREATE INDEX vector_by_value ON vector USING hnsw ((value::halfvec(384)) halfvec_cosine_ops) WHERE dims = 384;

-- Which documents hold a term: a keyed number of a stem or of a token.
CREATE TABLE posting (
    vault bytea NOT NULL,
    term bigint NOT NULL,
    source smallint NOT NULL,
    row bigint NOT NULL,
    frequency smallint NOT NULL,
    PRIMARY KEY (vault, term, source, row)
) PARTITION BY HASH (vault);
CREATE INDEX posting_by_document ON posting (vault, source, row);

CREATE TABLE grants (vault bytea NOT NULL, id bytea NOT NULL, issued bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, id));
CREATE TABLE token (vault bytea NOT NULL, id bytea NOT NULL, hash bytea NOT NULL, issued bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, id), UNIQUE (vault, hash));
CREATE TABLE hold (vault bytea NOT NULL, id bytea NOT NULL, state smallint NOT NULL, asked bigint NOT NULL, agent bytea, data bytea NOT NULL, PRIMARY KEY (vault, id));
CREATE INDEX hold_by_state ON hold (vault, state, asked);
CREATE TABLE rule (vault bytea NOT NULL, name bytea NOT NULL, position bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, name));

CREATE TABLE profile (vault bytea NOT NULL, whose bytea NOT NULL, version bigint NOT NULL, recorded bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, whose, version));
CREATE TABLE procedure (vault bytea NOT NULL, memory bytea NOT NULL, name bytea NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, memory));
CREATE TABLE job (vault bytea NOT NULL, id bytea NOT NULL, state smallint NOT NULL, created bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, id));
CREATE TABLE operation (vault bytea NOT NULL, mac bytea NOT NULL, at bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, mac));

CREATE TABLE stream (vault bytea NOT NULL, mac bytea NOT NULL, revision bigint NOT NULL, ended bigint, data bytea NOT NULL, PRIMARY KEY (vault, mac));
CREATE TABLE frame (vault bytea NOT NULL, stream bytea NOT NULL, number bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, stream, number));
CREATE TABLE letter (vault bytea NOT NULL, mac bytea NOT NULL, seq bigint NOT NULL, inbox bytea NOT NULL, state smallint NOT NULL, received bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, mac));
CREATE INDEX letter_by_inbox ON letter (vault, inbox, state, seq);

CREATE TABLE audit (
    vault bytea NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    operation text NOT NULL,
    agent bytea,                             -- keyed digest of the agent's name
    hash bytea NOT NULL,
    change bigint NOT NULL,                  -- how many changes were made by then
    data bytea NOT NULL,                     -- canonical JSON of the draft, exactly what was hashed
    changes bytea,                           -- the outbox: what this commit changed; NULL when nothing
    PRIMARY KEY (vault, seq)
) PARTITION BY HASH (vault);
CREATE INDEX audit_by_change ON audit (vault, change) WHERE changes IS NOT NULL;
-- Memories an entry names without writing a version of them.
CREATE TABLE audit_target (vault bytea NOT NULL, memory bigint NOT NULL, seq bigint NOT NULL, PRIMARY KEY (vault, memory, seq));
CREATE TABLE checkpoint (vault bytea NOT NULL, seq bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (vault, seq));

-- What was erased, so that nothing brings it back: ids and times, never a word.
CREATE TABLE ledger (
    vault bytea NOT NULL,
    mac bytea NOT NULL,                      -- keyed digest of namespace and name
    message bytea NOT NULL,                  -- the id of one message; empty when all of it went
    kind smallint NOT NULL,                  -- as in alias
    target bytea,                            -- its own id; NULL for a name that a caller chose
    at bigint NOT NULL,
    PRIMARY KEY (vault, mac, message)
);

-- The catalog: tenants, vaults and their wrapped keys. Seen as the catalog, a vault's own line also
-- by that vault.
CREATE TABLE root (vault bytea PRIMARY KEY, sheet text NOT NULL); -- the root keys under the master key
CREATE TABLE tenant (vault bytea NOT NULL, id bytea NOT NULL, name text NOT NULL, PRIMARY KEY (vault, id), UNIQUE (vault, name));
CREATE TABLE locate (vault bytea NOT NULL, mac bytea NOT NULL, target bytea NOT NULL, PRIMARY KEY (vault, mac));
CREATE TABLE line (
    vault bytea PRIMARY KEY,
    tenant bytea NOT NULL,
    owner text NOT NULL,
    did text NOT NULL,
    created bigint NOT NULL,
    wrapped bytea NOT NULL,                  -- the vault's key under the root key
    checkpoint bytea,                        -- a copy of its last signed audit checkpoint
    UNIQUE (tenant, owner)
);
