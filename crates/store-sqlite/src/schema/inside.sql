-- Messages whose attachments were not yet read.
CREATE TABLE unread (message INTEGER PRIMARY KEY REFERENCES message (row));
INSERT INTO unread SELECT DISTINCT message FROM blob_use;

-- What attachments say. Numbers are never used again: saved indexes know the last they contain.
CREATE TABLE inside (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    message INTEGER NOT NULL UNIQUE REFERENCES message (row),
    data TEXT NOT NULL                   -- each attachment with its text
);
