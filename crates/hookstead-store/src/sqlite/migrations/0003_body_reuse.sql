-- Bodies that are looked out for under other identities of their source: an entry for each event that was accepted
-- so, while its body is kept.
CREATE TABLE watched_bodies (
    source INTEGER NOT NULL,
    -- The first 16 bytes of the body's digest, which keeps the table small. A hit is compared with the event's.
    digest_prefix BLOB NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (source, digest_prefix, seq)
) STRICT, WITHOUT ROWID;

-- Events whose body another event of their source had first. Rare, so no column of every event.
CREATE TABLE reused_bodies (
    seq INTEGER PRIMARY KEY,
    same_body_as BLOB NOT NULL
) STRICT;
