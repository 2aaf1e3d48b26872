-- Under which name the pieces of an attachment arrived, and are sealed: encrypted for the attachment.
-- NULL where they arrived under its own.
ALTER TABLE blob ADD COLUMN origin bytea;
