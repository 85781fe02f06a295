CREATE TABLE attempts (
    seq INTEGER NOT NULL,
    destination INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    -- From 1, in the order in which they were settled.
    ordinal INTEGER NOT NULL,
    token INTEGER NOT NULL,
    number INTEGER NOT NULL,
    started_at_us INTEGER NOT NULL,
    took_us INTEGER NOT NULL,
    status INTEGER,
    error TEXT,
    rule TEXT,
    excerpt BLOB NOT NULL,
    PRIMARY KEY (seq, destination, generation, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE destinations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    -- Seconds before each attempt, joined by commas.
    retry_schedule_s TEXT NOT NULL,
    retry_attempts_max INTEGER NOT NULL,
    retry_age_max_s INTEGER NOT NULL,
    retry_jitter_percent INTEGER NOT NULL,
    paused INTEGER NOT NULL
) STRICT;

CREATE TABLE done (
    seq INTEGER NOT NULL,
    destination INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    event_id BLOB NOT NULL,
    state TEXT NOT NULL,
    due_us INTEGER,
    ended_at_us INTEGER,
    made_at_us INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    token INTEGER NOT NULL,
    key_generation INTEGER NOT NULL,
    redelivery BLOB,
    dead TEXT,
    dead_words TEXT,
    decision_by TEXT,
    decision_note TEXT,
    decision_at_us INTEGER,
    settled_token INTEGER,
    settled TEXT,
    settled_due_us INTEGER,
    settled_words TEXT,
    PRIMARY KEY (seq, destination, generation)
) STRICT, WITHOUT ROWID;

CREATE TABLE duplicates (
    seq INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    last_at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE event_ids (
    id BLOB PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    source INTEGER NOT NULL,
    scope BLOB NOT NULL,
    provider_event_id BLOB NOT NULL,
    event_type TEXT,
    account TEXT,
    received_from TEXT,
    verified_by TEXT,
    received_at_us INTEGER NOT NULL,
    committed_at_us INTEGER NOT NULL,
    digest BLOB NOT NULL,
    body_bytes INTEGER NOT NULL,
    comparison_rule INTEGER,
    comparison_digest BLOB,
    revises BLOB,
    -- Sums over all events up to this one, so that counts need no scan.
    body_bytes_total INTEGER NOT NULL,
    deliveries_total INTEGER NOT NULL,
    erased_at_us INTEGER,
    headers BLOB,
    -- Last, so that reading the rest never touches its pages. NULL after erasure.
    body BLOB
) STRICT;

CREATE TABLE identities (
    hash BLOB PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE identity_ranges (
    number INTEGER PRIMARY KEY,
    flushed_to INTEGER NOT NULL
) STRICT;

CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE pending_identities (
    last_seq INTEGER PRIMARY KEY,
    -- 16 bytes each.
    hashes BLOB NOT NULL
) STRICT;

CREATE TABLE redeliveries (
    id BLOB PRIMARY KEY,
    source INTEGER,
    event_type TEXT,
    committed_from_us INTEGER,
    committed_before_us INTEGER,
    destination INTEGER NOT NULL,
    fresh_key INTEGER NOT NULL,
    asked_by TEXT NOT NULL,
    note TEXT NOT NULL,
    made_at_us INTEGER NOT NULL,
    cursor INTEGER NOT NULL,
    until INTEGER NOT NULL,
    made INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    -- running, complete, cancelled
    state TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE reused_bodies (
    seq INTEGER PRIMARY KEY,
    same_body_as BLOB NOT NULL
) STRICT;

CREATE TABLE runs (
    seq INTEGER NOT NULL,
    run TEXT NOT NULL,
    digest BLOB NOT NULL,
    processed_at_us INTEGER NOT NULL,
    business_id TEXT,
    payload BLOB,
    PRIMARY KEY (seq, run)
) STRICT;

CREATE TABLE sources (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,
    identity_fingerprint TEXT NOT NULL
) STRICT;

CREATE TABLE store (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    -- The key of the identity hashes: 32 random bytes, made with the store.
    identity_key BLOB NOT NULL,
    -- How many write probes and first-commit barriers there were.
    probes INTEGER NOT NULL,
    barriers INTEGER NOT NULL,
    -- What retention has erased so far: events, and the bytes of their bodies.
    erased INTEGER NOT NULL,
    erased_body_bytes INTEGER NOT NULL,
    -- Every event below this sequence number is erased.
    kept_from INTEGER NOT NULL
) STRICT;

CREATE TABLE variants (
    rowid INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    variant INTEGER NOT NULL,
    digest BLOB NOT NULL,
    body_bytes INTEGER NOT NULL,
    received_at_us INTEGER NOT NULL,
    -- open, accepted, dismissed
    state TEXT NOT NULL,
    revision BLOB,
    decision_by TEXT,
    decision_note TEXT,
    decision_at_us INTEGER,
    headers BLOB,
    body BLOB,
    UNIQUE (seq, variant)
) STRICT;

CREATE TABLE watched_bodies (
    source INTEGER NOT NULL,
    -- The first 16 bytes of the body's digest, which keeps the table small. A hit is compared with the event's.
    digest_prefix BLOB NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (source, digest_prefix, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE work (
    seq INTEGER NOT NULL,
    destination INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    event_id BLOB NOT NULL,
    state TEXT NOT NULL,
    -- When a waiting one may be claimed, when a leased one expires.
    due_us INTEGER,
    -- When a dead one died, when a done one was done.
    ended_at_us INTEGER,
    made_at_us INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    token INTEGER NOT NULL,
    key_generation INTEGER NOT NULL,
    redelivery BLOB,
    -- Why a dead one is dead: refused (and the words), attempts, age.
    dead TEXT,
    dead_words TEXT,
    decision_by TEXT,
    decision_note TEXT,
    decision_at_us INTEGER,
    -- The newest lease that was settled, and what it came to.
    settled_token INTEGER,
    settled TEXT,
    settled_due_us INTEGER,
    settled_words TEXT,
    PRIMARY KEY (seq, destination, generation)
) STRICT, WITHOUT ROWID;

CREATE INDEX variants_open ON variants (seq, variant) WHERE state = 'open';

CREATE INDEX work_leased ON work (due_us, seq, destination, generation) WHERE state = 'leased';

CREATE INDEX work_waiting ON work (destination, due_us, seq, generation) WHERE state = 'waiting';
