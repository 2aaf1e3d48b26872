-- The store's own books, laid over the schema of a vault: tenants, vaults and their wrapped keys.

CREATE TABLE tenant (id BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE) WITHOUT ROWID;
CREATE TABLE vault (
    id BLOB PRIMARY KEY,
    tenant BLOB NOT NULL,
    owner TEXT NOT NULL,
    did TEXT NOT NULL,
    created INTEGER NOT NULL,
    wrapped BLOB NOT NULL,               -- the vault's key under the master key
    checkpoint TEXT,                     -- a copy of its last signed audit checkpoint
    UNIQUE (tenant, owner)
) WITHOUT ROWID;
CREATE TABLE locate (mac BLOB PRIMARY KEY, vault BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE issuer (did TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID;
