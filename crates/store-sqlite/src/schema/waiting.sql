-- Only letters that wait are asked for by inbox; most were settled at once and need no place there.
DROP INDEX letter_by_inbox;
CREATE INDEX letter_by_inbox ON letter (inbox, seq) WHERE state <= 1;
