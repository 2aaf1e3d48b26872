-- What servers on one database share besides vaults.

-- Who does which work in a vault, and until when by the clock of the database.
CREATE TABLE lease (
    vault bytea NOT NULL,
    work text NOT NULL,
    holder bytea NOT NULL,
    ends timestamptz NOT NULL,
    PRIMARY KEY (vault, work)
);

-- How much callers have left this minute. Not worth a journal: a crash fills every bucket.
CREATE UNLOGGED TABLE bucket (
    vault bytea NOT NULL,
    name bytea NOT NULL,                     -- keyed digest of the caller and of what is counted
    amount double precision NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (vault, name)
);

-- When an attachment last grew, so that one which broke off is known.
ALTER TABLE blob ADD COLUMN grown bigint NOT NULL DEFAULT 0;
CREATE INDEX blob_unfinished ON blob (vault, grown) WHERE size IS NULL;
