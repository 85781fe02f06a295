//! `hookstead sources`: the configuration file is changed with care, and what is no signing secret is refused.

use std::fs;

use serde_json::json;

use crate::terminal::Terminal;

const CONFIG: &str = "# ours\n[sources.github] # the code\nsecret = { env = \"OLD\" }\n";

fn terminal() -> Terminal {
    let mut terminal = Terminal::new();
    terminal.write("hookstead.toml", CONFIG);
    terminal.set("OLD", "the-old-secret-0123456789");
    terminal.set("NEW", "the-new-secret-0123456789");
    terminal.set("API_KEY", "sk_live_0123456789abcdef");
    terminal
}

fn file(terminal: &Terminal) -> String {
    fs::read_to_string(terminal.path("hookstead.toml")).expect("the configuration")
}

#[test]
fn a_source_is_added_to_the_file_and_to_the_running_server() {
    let terminal = terminal();
    let server = terminal.serve();
    let add = ["sources", "add", "shop", "--provider", "shopify", "--generate", "shop-secret", "--json"];
    let added = terminal.ok(&add).json();
    assert_eq!((&added["provider"], &added["reloaded"]), (&json!("shopify"), &json!(true)));
    assert!(file(&terminal).starts_with(CONFIG), "{}", file(&terminal));
    terminal.ok(&["send", "shopify", "--source", "shop"]);
    assert_eq!(server.admin().events().len(), 1);

    let listed = terminal.ok(&["sources", "list", "--json"]).json();
    assert_eq!(listed[0]["secrets"], json!(["{ env = \"OLD\" }"]));
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    terminal.ends(&add, 5);
}

#[test]
fn what_is_no_signing_secret_is_refused_and_nothing_is_changed() {
    let terminal = terminal();
    let ran = terminal.ends(&["sources", "add", "stripe", "--env", "API_KEY"], 5);
    assert!(ran.stderr.contains("a Stripe API key") && ran.stderr.contains("nothing was changed"), "{ran:?}");
    terminal.ends(&["sources", "add", "stripe", "--env", "NOT_SET"], 5);
    terminal.ends(&["sources", "add", "stripe"], 5);
    terminal.ends(&["sources", "add", "strpe", "--env", "NEW"], 3);
    terminal.ends(&["sources", "rotate", "github", "--env", "API_KEY"], 5);
    // A name that cannot be one, after its secret was made: the file goes as well.
    terminal.ends(&["sources", "add", "a b", "--provider", "gitea", "--generate", "made"], 5);
    assert!(!terminal.path("made").exists());
    assert_eq!(file(&terminal), CONFIG);
    assert_eq!(Terminal::new().ends(&["sources", "add", "github"], 5).stdout, "");
}

#[test]
fn a_secret_is_rotated_with_an_overlap() {
    let terminal = terminal();
    terminal.ok(&["sources", "rotate", "github", "--add", "--env", "NEW"]);
    let both =
        CONFIG.replace("secret = { env = \"OLD\" }", "secrets = [{ env = \"NEW\" }, { env = \"OLD\" }]");
    assert_eq!(file(&terminal), both);
    let server = terminal.serve();
    for variable in ["OLD", "NEW"] {
        terminal.ok(&["send", "github", "--secret-env", variable]);
    }
    let rotated = terminal.ok(&["sources", "rotate", "github", "--env", "NEW", "--json"]).json();
    assert_eq!((&rotated["secrets"], &rotated["reloaded"]), (&json!(["{ env = \"NEW\" }"]), &json!(true)));
    assert_eq!(file(&terminal), CONFIG.replace("OLD", "NEW"));
    // The old one is no secret any more.
    terminal.ends(&["send", "github", "--secret-env", "OLD"], 5);
    assert_eq!(server.admin().events().len(), 2);
}
