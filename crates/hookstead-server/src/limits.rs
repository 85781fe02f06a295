//! Every limit of the HTTP side in one place, each with its reason. What an operator may change stands in
//! `[limits]` and `[server]` of the configuration; the values here are then the defaults.

use std::time::Duration;

use hookstead::core::QUERY_BYTES_MAX;

/// Largest request head (request line and fields) in bytes. Providers send 1 to 3 KiB; hyper needs at least 8 KiB.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Most header fields of a request. Providers send 10 to 20, proxies add a dozen. It is hyper's own limit: to ask for
/// another has it copy 6 KiB for each request.
pub const HEADER_FIELDS_MAX: usize = 100;

/// Longest request target in bytes: room for every signed address that providers use, half of the head.
pub const TARGET_BYTES_MAX: usize = HEAD_BYTES_MAX / 2;
const _: () = assert!(TARGET_BYTES_MAX <= QUERY_BYTES_MAX, "a query that is taken can be kept");

/// Largest body where neither the provider's record nor the source says otherwise.
pub const BODY_BYTES_MAX: u64 = 1024 * 1024;

/// The largest body limit that can be configured: above it a webhook is a file transfer.
pub const BODY_BYTES_CEILING: u64 = 1024 * 1024 * 1024;

/// Memory for all bodies in flight together.
pub const BODY_MEMORY_BYTES: u64 = 32 * 1024 * 1024;

/// Step in which memory for a body is reserved as its bytes arrive.
pub const BODY_STEP_BYTES: usize = 64 * 1024;

/// Step for the first [`BODY_STEP_BYTES`] of a body, so that thousands of small bodies fit the budget.
pub const BODY_FIRST_STEP_BYTES: usize = 4 * 1024;

/// Time for the head of a request, from its first byte (or from the connection's start) to its last.
pub const HEADER_TIME: Duration = Duration::from_secs(5);

/// Time for any body, however small.
pub const BODY_TIME: Duration = Duration::from_secs(10);

/// The slowest body that is waited for, in bytes a second, on top of [`BODY_TIME`].
pub const BODY_BYTES_PER_SECOND_MIN: u64 = 64 * 1024;

/// Time between two requests of a connection. Longer than the 60 s after which common proxies and senders'
/// connection pools give up, so that it is mostly them who close.
pub const IDLE_TIME: Duration = Duration::from_secs(75);

/// Time in which a complete request is answered, whatever its commit does. Providers wait for ten seconds, some for
/// five; then they count a failure, and a later answer tells nobody anything.
pub const ANSWER_TIME: Duration = Duration::from_secs(9);

/// Time in which a client must take some bytes of its answer.
pub const WRITE_TIME: Duration = Duration::from_secs(10);

/// Connections of the intake, all together.
pub const CONNECTIONS_MAX: usize = 4096;

/// Connections of one address (IPv6: of one /64, since that is what one customer gets). Loopback is exempt: behind a
/// proxy or tunnel on this machine everybody comes from there. So is a trusted proxy; of a client that it names, so
/// many requests may be in flight.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 64;

/// How many entries of a forwarding header are read, from the right. Nobody has so many proxies of his own.
pub const PROXY_HOPS_MAX: usize = 16;

/// Longest text of a success that a source can name, in bytes. Senders want a word or a line of XML.
pub const SUCCESS_BODY_BYTES_MAX: usize = 4 * 1024;

/// The most requests of a time that a source's `rate` can name: above it a limit limits nothing.
pub const RATE_REQUESTS_MAX: u32 = 1_000_000;

/// Connections of the admin listener: people and their tools.
pub const ADMIN_CONNECTIONS_MAX: usize = 256;

/// File handles beside those of connections: the store's files and readers, listeners, logs, the runtime's own.
pub const DESCRIPTORS_BESIDE: usize = 128;

/// Connections that the kernel keeps until they are accepted. `net.core.somaxconn` may lower it.
pub const BACKLOG: u32 = 1024;

/// How long, and how many bytes, are read and thrown away after an answer that came before the end of the
/// request. Closing at once would reset the connection, and the sender would never see the answer.
pub const LINGER_TIME: Duration = Duration::from_secs(2);
/// See [`LINGER_TIME`].
pub const LINGER_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Pause of the accept loop when the process has no file handles left, so that it does not spin.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a stop waits for the first byte of a connection that is open and has sent nothing: enough for a
/// request that is on its way.
pub const SILENT_GRACE: Duration = Duration::from_millis(250);

/// How long a stop waits for what is in flight.
pub const DRAIN_TIME: Duration = Duration::from_secs(20);

/// How long before the end of a stop requests that are still arriving are refused with 503, so that each of
/// them gets an answer.
pub const LAST_ANSWERS_TIME: Duration = Duration::from_millis(500);

/// How long a stop goes on behind its end while connections are open: whoever was to answer by then has a turn to do so,
/// also on a machine that stood still until everything was due at once. Sending an answer takes much less.
pub const LAST_TURN_TIME: Duration = Duration::from_millis(250);

/// How long a poisoned server goes on answering 503 (and reads) before the process ends: long enough for a
/// load balancer and a person to see why.
pub const FAILSTOP_LINGER: Duration = Duration::from_secs(10);

/// Reads of the admin API that may be in the store at once; others wait for [`READ_WAIT`].
pub const READS_MAX: usize = 8;

/// How long a read of the admin API waits for its turn.
pub const READ_WAIT: Duration = Duration::from_secs(5);

/// Changes by the admin API that may wait for the store at once; others wait for [`READ_WAIT`]. People and their
/// scripts make them, so a few are many.
pub const CHANGES_MAX: usize = 8;

/// Largest body of a request to the admin API, in bytes: what is asked for has a name or two.
pub const API_BODY_BYTES_MAX: usize = 64 * 1024;

/// Longest wait of a claim or of a tail for something to come: shorter than the 60 s after which common proxies give
/// up, with room for a busy moment.
pub const WAIT_MAX: Duration = Duration::from_secs(50);

/// Claims and tails that may wait at once: half of the admin listener's connections, so that people get through.
pub const WAITING_MAX: usize = ADMIN_CONNECTIONS_MAX / 2;

/// How long a waiting claim or tail relies on being told: afterwards it looks again by itself.
pub const WAIT_LOOK: Duration = Duration::from_secs(10);

/// Bodies that one claim answers with, together, in bytes. What does not fit is given back untried; one larger body
/// comes alone.
pub const CLAIM_BODY_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Claims that may be read and answered at once, which bounds what their bodies take.
pub const CLAIMS_ANSWERED_MAX: usize = 8;

/// Leases that one request settles: as many as one claim takes.
pub const SETTLE_BATCH_MAX: usize = hookstead_core::lease::CLAIM_MAX as usize;

/// Largest body of a request that settles leases in a batch: each with a reason of some words.
pub const SETTLE_BATCH_BYTES_MAX: usize = 512 * 1024;

/// Events on one page of an export, so that their header fields together take some megabytes at the most.
pub const EXPORT_EVENTS_MAX: u16 = 200;

/// Bodies on one page of an export, together, in bytes; one larger body is a page of its own.
pub const EXPORT_BODY_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Lines of one request that imports events: half of a commit, so that requests from outside have room beside them.
pub const IMPORT_LINES_MAX: usize = 256;

/// Bytes of one request that imports events; one longer line comes alone.
pub const IMPORT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Imports that are read and committed at once, which bounds what their lines take; others wait for [`READ_WAIT`].
pub const IMPORTS_MAX: usize = 2;

/// Header fields of an imported event, in bytes: four heads of ours, for events that another intake took in.
pub const IMPORT_HEADERS_BYTES_MAX: usize = 4 * HEAD_BYTES_MAX;

/// Longest reason or note that is kept, in bytes.
pub const NOTE_BYTES_MAX: usize = 1024;

/// Up to how many deliveries in one state are counted for a person who asks for a destination.
pub const PAGE_COUNT_MAX: u16 = hookstead_core::query::PAGE_MAX;

/// Pages that are read for such a count: a million unfinished deliveries, less than a second in a SQLite store.
pub const COUNT_PAGES_MAX: u32 = 10;

/// Events that one step of a redelivery looks at: a commit of some milliseconds, so that what else waits gets its turn.
pub const REDELIVERY_STEP: u32 = 200;

/// How many of a source's newest events are looked through for scopes when an event is looked up by its provider's
/// id: enough for every hook that is in use, and read in a second from a cold disk.
pub const LOOKUP_EVENTS_MAX: usize = 10_000;

/// How many events such a look-up reads at a time.
pub const LOOKUP_PAGE: u16 = 1_000;

/// How many events of one provider's id are offered to choose from; a person reads no more.
pub const LOOKUP_CHOICES_MAX: usize = 20;

/// How many receipts of an event's runs are listed.
pub const RUNS_LISTED_MAX: usize = 1_000;

/// Items of a list when the request names no number.
pub const PAGE_DEFAULT: u16 = 50;

/// Largest configuration file. Anything longer is another file.
pub const CONFIG_BYTES_MAX: u64 = 1024 * 1024;
