-- What was erased, so that no restore and no import brings it back: names and times, never a word.
CREATE TABLE ledger (
    namespace TEXT NOT NULL,             -- whose name it is; empty is the owner's
    name TEXT NOT NULL,                  -- the id of a memory or a conversation
    message BLOB NOT NULL,               -- the id of one message; empty when all of it went
    kind INTEGER NOT NULL,               -- 0 memory 2 conversation, as in alias
    at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name, message)
) WITHOUT ROWID;
