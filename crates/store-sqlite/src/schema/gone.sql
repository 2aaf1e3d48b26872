-- What was said here and removed for good: no archive brings it back. An empty message means the
-- whole conversation.
CREATE TABLE gone (conversation BLOB NOT NULL, message BLOB NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (conversation, message)) WITHOUT ROWID;
