//! What a person reads who asks for help, verb by verb.

use crate::terminal::Terminal;

/// Every verb, as it is typed. A verb that is missing here fails the first test.
const VERBS: [&str; 56] = [
    "",
    "serve",
    "demo",
    "send",
    "sign",
    "events",
    "events list",
    "events show",
    "events body",
    "events redeliver",
    "events export",
    "events import",
    "tail",
    "sources",
    "sources list",
    "sources add",
    "sources rotate",
    "sources secret",
    "sources refusals",
    "destinations",
    "destinations list",
    "destinations show",
    "destinations add",
    "destinations pause",
    "destinations resume",
    "destinations secret",
    "destinations remove",
    "deliveries",
    "deliveries list",
    "deliveries show",
    "deliveries redeliver",
    "deliveries done",
    "deliveries hold",
    "deliveries release",
    "redeliveries",
    "redeliveries list",
    "redeliveries show",
    "redeliveries cancel",
    "replay",
    "providers",
    "providers list",
    "providers show",
    "providers check",
    "providers test",
    "doctor",
    "store",
    "store check",
    "store backup",
    "store restore",
    "config",
    "config init",
    "config check",
    "config show",
    "token",
    "token create",
    "completions",
];

#[test]
fn every_verb_is_listed_here() {
    let terminal = Terminal::new();
    let mut found = vec![String::new()];
    let mut at = 0;
    while at < found.len() {
        let verb = found[at].clone();
        for name in verbs_below(&help(&terminal, &verb)) {
            if name != "help" {
                found.push(format!("{verb} {name}").trim().to_owned());
            }
        }
        at += 1;
    }
    let mut listed = VERBS.map(str::to_owned).to_vec();
    found.sort_unstable();
    listed.sort_unstable();
    assert_eq!(found, listed);
}

#[test]
fn every_help_begins_with_examples_and_fits_a_screen() {
    let terminal = Terminal::new();
    for verb in VERBS {
        let help = help(&terminal, verb);
        let (before, rest) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{verb}: {help}"));
        assert!(!before.contains("Options:"), "{verb}: the examples come first");
        let examples = rest.lines().take_while(|line| !line.is_empty());
        let examples: Vec<&str> = examples.collect();
        assert!(examples.len() >= 2, "{verb}: two examples");
        assert!(examples.iter().all(|line| line.contains("hookstead ")), "{verb}: one example a line");
        assert!(help.lines().count() <= 60, "{verb}: {} lines", help.lines().count());
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{verb}: a line is too long");
    }
}

/// The examples name verbs and options that exist: each is understood as far as its options go.
#[test]
fn examples_can_be_typed() {
    let terminal = Terminal::new();
    for verb in VERBS {
        let help = help(&terminal, verb);
        let examples = help.split_once("Examples:\n").map_or("", |(_, rest)| rest);
        let examples = examples.lines().take_while(|line| !line.is_empty());
        let lines = examples.filter_map(|line| line.trim_start().strip_prefix("hookstead "));
        for line in lines.filter(|line| !line.contains('|')) {
            let words: Vec<&str> = line.split("   ").next().unwrap_or_default().split(' ').collect();
            let words = words.iter().take_while(|word| !["&&", "<", ">", "#"].contains(word));
            let mut typed: Vec<String> = words.map(|word| word.trim_matches('\'').to_owned()).collect();
            typed.push("--help".to_owned());
            let ran = terminal.run(&typed);
            assert_eq!(ran.exit_code, Some(0), "{verb}: `{line}`: {}", ran.stderr);
        }
    }
}

#[test]
fn help_reads_as_it_did() {
    let terminal = Terminal::new();
    for verb in VERBS {
        let name = if verb.is_empty() { "hookstead".to_owned() } else { verb.replace(' ', "-") };
        insta::assert_snapshot!(name, help(&terminal, verb));
    }
}

#[test]
fn alone_it_says_what_to_try_first() {
    let ran = Terminal::new().ok(&[]);
    insta::with_settings!({ filters => vec![(r"hookstead \d+\.\d+\.\d+", "hookstead VERSION")] }, {
        insta::assert_snapshot!("alone", ran.stdout);
    });
}

fn help(terminal: &Terminal, verb: &str) -> String {
    let words = verb.split(' ').filter(|word| !word.is_empty()).chain(["--help"]);
    let ran = terminal.run(words);
    assert_eq!(ran.exit_code, Some(0), "{verb}: {ran:?}");
    ran.stdout
}

/// The verbs in a help's list of commands.
fn verbs_below(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let names = listed.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}
