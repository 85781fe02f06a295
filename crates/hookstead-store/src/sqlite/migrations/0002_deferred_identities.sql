-- The index of identities is written late: sorted, and a range of hashes at a time. What an event takes stands in
-- `pending_identities` until its range is flushed into `identities`.

-- Hashes of events whose sequence numbers follow each other: those up to `last_seq`. A row goes when all of its hashes
-- are in `identities`.
CREATE TABLE pending_identities (
    last_seq INTEGER PRIMARY KEY,
    -- 16 bytes each.
    hashes BLOB NOT NULL
) STRICT;

-- One row for each first byte of a hash. The hash of an event up to `flushed_to` is in `identities`, that of a later
-- one in `pending_identities`.
CREATE TABLE identity_ranges (
    number INTEGER PRIMARY KEY,
    flushed_to INTEGER NOT NULL
) STRICT;

INSERT INTO identity_ranges (number, flushed_to)
WITH RECURSIVE ranges (number) AS (
    SELECT 0 UNION ALL SELECT number + 1 FROM ranges WHERE number < 255
)
SELECT number, (SELECT coalesce(max(seq), 0) FROM events) FROM ranges;
