-- What was kept as a digest alone, under the vault's own key: another store must be told what it
-- was. NULL in rows of servers that did not know of it.
ALTER TABLE memory ADD COLUMN said bytea;    -- what statement is a digest of
ALTER TABLE ledger ADD COLUMN data bytea;    -- what mac is a digest of
