//! A program as a destination: what it is given, what its end means, and that nothing of it outlives its
//! attempt.

use std::time::Duration;

use hookstead::core::attempt::ATTEMPT_EXCERPT_BYTES_MAX;
use hookstead::core::{RawHeaders, RawQuery};
use hookstead::sink::exec::{ExecOptions, ExecSetupError, ExecSink};
use hookstead::sink::{Outgoing, Sink, TargetHealth, Tried, TriedVerdict};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

use super::outgoing::{BODY, KEY, outgoing, outgoing_with};

/// For programs that end by themselves; long, since the machine may be busy.
const LONG: Duration = Duration::from_secs(60);

/// For programs that hang; time enough for what they do first, also on a busy machine.
const SHORT: Duration = Duration::from_secs(5);

/// How much later than its timeout an attempt may end on a busy machine.
const SLACK: Duration = Duration::from_secs(20);

fn shell(script: &str, timeout: Duration) -> ExecOptions {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    ExecOptions { timeout, ..ExecOptions::new(command) }
}

async fn run(options: ExecOptions, outgoing: &Outgoing) -> Tried {
    let (begun, limit) = (Instant::now(), options.timeout + SLACK);
    let tried = ExecSink::new(options).unwrap().deliver(outgoing).await;
    assert!(begun.elapsed() < limit, "{tried:?}");
    assert!(tried.excerpt.len() <= ATTEMPT_EXCERPT_BYTES_MAX);
    tried
}

async fn run_script(script: &str) -> Tried {
    run(shell(script, LONG), &outgoing()).await
}

const RETRY: TriedVerdict = TriedVerdict::Retry { after: None };

#[tokio::test]
async fn the_exit_code_decides() {
    use TargetHealth::{Down, Up};
    for (script, rule, verdict, target, status) in [
        ("exit 0", "exit-0", TriedVerdict::Done, Up, Some(0)),
        ("exit 75", "exit-75", RETRY, Down, Some(75)),
        ("exit 1", "exit-code", RETRY, Up, Some(1)),
        ("exit 255", "exit-code", RETRY, Up, Some(255)),
        ("kill -9 $$", "signal", RETRY, Up, None),
        ("kill -TERM $$", "signal", RETRY, Up, None),
    ] {
        let tried = run_script(&format!("echo said; {script}")).await;
        assert_eq!(
            (tried.rule, &tried.verdict, tried.target),
            (rule, &verdict, target),
            "{script}: {tried:?}"
        );
        assert_eq!((tried.status, &tried.excerpt[..]), (status, &b"said\n"[..]));
        assert_eq!(tried.error.is_none(), verdict == TriedVerdict::Done);
    }
}

#[tokio::test]
async fn the_body_is_on_stdin_byte_for_byte() {
    let tried = run(ExecOptions { timeout: LONG, ..ExecOptions::new(vec!["cat".into()]) }, &outgoing()).await;
    assert_eq!((tried.rule, &tried.excerpt[..]), ("exit-0", BODY));

    let large = vec![b'y'; 3 * 1024 * 1024]; // many times what a pipe holds
    let tried = run(shell("wc -c", LONG), &outgoing_with(&[], &large)).await;
    assert_eq!(String::from_utf8_lossy(&tried.excerpt).trim(), large.len().to_string());
}

#[tokio::test]
async fn a_program_need_not_read_what_it_is_given() {
    let large = outgoing_with(&[], vec![b'y'; 3 * 1024 * 1024]);
    for script in ["exit 0", "head -c 10 >/dev/null", "exec <&-"] {
        assert_eq!(run(shell(script, LONG), &large).await.rule, "exit-0", "{script}");
    }
    assert_eq!(run(shell("exec <&-; exit 75", LONG), &large).await.rule, "exit-75");
    // It writes while it is written to, and reads later.
    let tried = run(shell("head -c 1000000 /dev/zero; wc -c >&2", LONG), &large).await;
    assert_eq!(tried.rule, "exit-0", "{tried:?}");
}

#[tokio::test]
async fn the_environment_holds_the_facts_and_little_else() {
    let environment =
        vec![("APP_MODE".to_owned(), "a b=c".to_owned()), ("HOOKSTEAD_SOURCE".into(), "x".into())];
    let options =
        ExecOptions { environment, timeout: LONG, ..ExecOptions::new(vec!["env".into(), "-0".into()]) };
    let mut outgoing = outgoing();
    let query = RawQuery::new(b"data.id=ORD01ABC&type=order").unwrap();
    outgoing.event.headers = RawHeaders::from_request(Some(query), outgoing.event.headers.fields());
    let tried = run(options, &outgoing).await;
    let variables: Vec<&[u8]> =
        tried.excerpt.split(|byte| *byte == 0).filter(|line| !line.is_empty()).collect();
    for expected in [
        &b"APP_MODE=a b=c"[..],
        b"HOOKSTEAD_EVENT=0198c0de-1111-7222-8333-444455556666",
        b"HOOKSTEAD_SOURCE=stripe",
        b"HOOKSTEAD_TYPE=invoice.paid",
        b"HOOKSTEAD_PROVIDER_ID=evt_\xe9",
        b"HOOKSTEAD_CONTENT_TYPE=application/json",
        b"HOOKSTEAD_QUERY=data.id=ORD01ABC&type=order",
        format!("HOOKSTEAD_IDEMPOTENCY_KEY={KEY}").as_bytes(),
        b"HOOKSTEAD_ATTEMPT=3",
        b"HOOKSTEAD_RECEIVED_AT=2026-02-02T02:40:00Z",
    ] {
        assert!(variables.contains(&expected), "{}", String::from_utf8_lossy(expected));
    }
    let inherited = ["HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ"];
    let known =
        |name: &str| name == "APP_MODE" || name.starts_with("HOOKSTEAD_") || inherited.contains(&name);
    for variable in variables {
        let name = String::from_utf8_lossy(variable).split('=').next().unwrap_or_default().to_owned();
        assert!(known(&name), "{name}");
    }
}

/// A fact that no environment can hold is left out; the program still runs.
#[tokio::test]
async fn a_fact_with_a_nul_byte_is_left_out() {
    let mut odd = outgoing();
    odd.event.event_type = Some("a\0b".into());
    let tried = run(shell("test -z \"${HOOKSTEAD_TYPE+set}\"", LONG), &odd).await;
    assert_eq!(tried.rule, "exit-0", "{tried:?}");
}

#[tokio::test]
async fn no_shell_reads_the_command() {
    let command = ["printf", "%s", "$HOME; `id` > \"x\" *"].map(str::to_owned).to_vec();
    let tried = run(ExecOptions { timeout: LONG, ..ExecOptions::new(command) }, &outgoing()).await;
    assert_eq!(&tried.excerpt[..], b"$HOME; `id` > \"x\" *");
}

#[tokio::test]
async fn a_program_that_cannot_start_is_down() {
    for program in ["/nonexistent/program", "no-such-program-anywhere", "/"] {
        let tried = run(ExecOptions::new(vec![program.into()]), &outgoing()).await;
        assert_eq!((tried.rule, tried.target), ("not-started", TargetHealth::Down));
        assert_eq!(tried.verdict, RETRY);
        assert!(tried.error.unwrap_or_default().starts_with(&format!("cannot start `{program}`: ")));
    }
}

/// The group's number is told by the script. Its leader, the child, is reaped; what the leader had started is
/// killed, and reaped by whoever does that on this machine.
async fn check_gone(excerpt: &[u8]) {
    let told = String::from_utf8_lossy(excerpt).lines().next().unwrap_or_default().to_owned();
    let leader = told.parse().ok().and_then(Pid::from_raw).unwrap();
    let deadline = Instant::now() + LONG;
    let mut tick = interval(Duration::from_millis(5));
    while test_kill_process(leader).is_ok() || lives_on(&told) {
        assert!(Instant::now() < deadline, "the process group {told} is still there");
        tick.tick().await;
    }
}

/// Whether a process of the group runs, by `/proc`; where there is none, nobody can tell a killed process that
/// waits for its parent from one that runs.
fn lives_on(group: &str) -> bool {
    let stats = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter_map(|stat| stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned())).any(|rest| {
        let mut fields = rest.split(' '); // state, parent, group
        !matches!(fields.next(), Some("Z" | "X")) && fields.nth(1) == Some(group)
    })
}

/// All at once: each takes its whole timeout.
#[tokio::test]
async fn a_program_that_hangs_is_killed_with_all_that_it_started() {
    let mut hanging = JoinSet::new();
    for script in [
        "echo $$; sleep 1000",
        "echo $$; exec sleep 1000",
        "echo $$; (sleep 1000 & sleep 1000 & wait)",
        "trap '' TERM INT HUP; echo $$; sleep 1000; sleep 1000",
        "echo $$; exec <&- >&- 2>&-; sleep 1000",
    ] {
        hanging.spawn(check_killed(script));
    }
    assert_eq!(hanging.join_all().await.len(), 5);
}

async fn check_killed(script: &str) {
    let tried = run(shell(script, SHORT), &outgoing()).await;
    assert_eq!((tried.rule, &tried.verdict, tried.target), ("timeout", &RETRY, TargetHealth::Down));
    assert!(tried.error.as_deref().unwrap_or_default().ends_with("timeout of 5s"), "{tried:?}");
    check_gone(&tried.excerpt).await;
}

#[tokio::test]
async fn a_program_that_writes_without_end_is_killed() {
    for script in ["echo $$; yes", "echo $$ >&2; yes >&2"] {
        let tried = run(shell(script, LONG), &outgoing()).await;
        assert_eq!((tried.rule, tried.target), ("output-too-long", TargetHealth::Up), "{tried:?}");
        assert_eq!(tried.excerpt.len(), ATTEMPT_EXCERPT_BYTES_MAX);
        check_gone(&tried.excerpt).await;
    }
    let tried = run_script("head -c 5000000 /dev/zero; exit 3").await;
    assert_eq!((tried.rule, tried.excerpt.len()), ("exit-code", ATTEMPT_EXCERPT_BYTES_MAX));
}

/// What is left in the background holds the pipes, and still the attempt ends with the program.
#[tokio::test]
async fn children_left_behind_hold_no_attempt() {
    let tried = run_script("echo said; sleep 1000 & echo $! >&2").await;
    assert_eq!(tried.rule, "exit-0", "{tried:?}");
    let text = String::from_utf8_lossy(&tried.excerpt).into_owned();
    let left: i32 = text.lines().find_map(|line| line.parse().ok()).unwrap();
    kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn an_attempt_that_is_called_off_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("number");
    let script = format!("echo $$ > '{0}.new'; mv '{0}.new' '{0}'; sleep 1000 & wait", file.display());
    let attempt = tokio::spawn(async move { run(shell(&script, LONG), &outgoing()).await });
    let deadline = Instant::now() + LONG;
    let mut tick = interval(Duration::from_millis(5));
    while !file.exists() {
        assert!(Instant::now() < deadline, "the program does not start");
        tick.tick().await;
    }
    attempt.abort();
    check_gone(&std::fs::read(&file).unwrap()).await;
}

#[test]
fn options_out_of_range_are_refused() {
    let good = ExecOptions::new(vec!["true".into()]);
    let with = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    for (bad, error) in [
        (ExecOptions { command: vec![], ..good.clone() }, ExecSetupError::Empty),
        (ExecOptions { command: vec![String::new()], ..good.clone() }, ExecSetupError::Empty),
        (ExecOptions { timeout: Duration::ZERO, ..good.clone() }, ExecSetupError::Timeout(Duration::ZERO)),
        (ExecOptions { command: vec!["a\0b".into()], ..good.clone() }, ExecSetupError::Text("a\\0b".into())),
        (ExecOptions { environment: with("", "x"), ..good.clone() }, ExecSetupError::Text(String::new())),
        (ExecOptions { environment: with("A=B", "x"), ..good.clone() }, ExecSetupError::Text("A=B".into())),
        (ExecOptions { environment: with("A", "\0"), ..good.clone() }, ExecSetupError::Text("\\0".into())),
    ] {
        assert_eq!(ExecSink::new(bad).err(), Some(error));
    }
    assert!(ExecSink::new(good).is_ok());
}
