-- Messages whose attachments were not yet read, and what attachments say, which goes with its
-- message even where a server of an older version erases it.
CREATE TABLE unread (
    vault bytea NOT NULL,
    message bigint NOT NULL,
    PRIMARY KEY (vault, message),
    FOREIGN KEY (vault, message) REFERENCES message (vault, row) ON DELETE CASCADE
);
INSERT INTO unread SELECT DISTINCT vault, message FROM blob_use;

CREATE TABLE inside (
    vault bytea NOT NULL,
    message bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (vault, message),
    FOREIGN KEY (vault, message) REFERENCES message (vault, row) ON DELETE CASCADE
);
