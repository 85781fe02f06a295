//! The pages of docs/providers/ as Markdown: one a provider, and their index.
//!
//! Deterministic, so that whoever stores them can compare them with those that are there.

use hookstead_verify::{Confidence, Provider, Registry};

use super::{list, words};

/// The page of a provider.
pub(super) fn page(provider: &Provider) -> String {
    let confidence = provider.confidence();
    let mut text = format!("# {}\n\n", provider.title());
    text += &match provider.docs() {
        "" => String::new(),
        docs => format!("[The provider's own description]({docs}). "),
    };
    text += &format!("Confidence: **{}**, {}.\n\n", confidence.as_str(), confidence.meaning());
    text += &connect(provider);
    section(&mut text, "What is verified", &words::verified(provider));
    section(&mut text, "What is not", &words::not_verified(provider));
    section(&mut text, "Identity", &identity(provider));
    section(&mut text, "Retries", &words::retries(provider));
    section(
        &mut text,
        &format!("Answers ({})", provider.ack().confidence.as_str()),
        &words::answers(provider),
    );
    if !provider.notes().is_empty() {
        text += &format!("## Notes\n\n{}\n\n", escaped(provider.notes()));
    }
    text += &format!(
        "The record: [{name}.toml](../../crates/hookstead-verify/providers/{name}.toml). This page is made from it by \
         `cargo xtask providers-docs`.\n",
        name = provider.name()
    );
    text
}

/// The index of all pages.
pub(super) fn index() -> String {
    let count = Registry::builtin().names().count();
    let mut text = format!(
        "# Providers\n\n{count} ways of signing that hookstead verifies, from records that a person can read. Each page says \
         in three steps how to connect, what a good signature proves and what it does not, and what is known of retries \
         and answers. `hookstead providers show NAME` says the same in a terminal.\n\n\
         How sure a record is:\n\n"
    );
    let words = [
        Confidence::OfficialSdk,
        Confidence::OfficialDocs,
        Confidence::ThirdParty,
        Confidence::Recalled,
        Confidence::Own,
    ];
    for word in words {
        let records = Registry::builtin().iter().filter(|provider| provider.confidence() == word).count();
        text += &format!("- **{}** ({records}): {}\n", word.as_str(), word.meaning());
    }
    text += "\nA provider that is missing is one file: [CONTRIBUTING.md](../../CONTRIBUTING.md). A sender of your own needs \
             no record: `scheme = { hmac = \"sha256\", header = \"x-signature\" }`.\n\n\
             | provider | proof | signs time | signs event id | confidence |\n|---|---|---|---|---|\n";
    for provider in Registry::builtin().iter() {
        let covered = if provider.has_id() { super::yes_no(provider.id_covered()) } else { "no id" };
        let line = format!(
            "| [{}]({}.md) | {} | {} | {covered} | {} |\n",
            escaped(provider.title()),
            provider.name(),
            list::algorithms(provider).join(", "),
            super::yes_no(provider.has_timestamp()),
            provider.confidence().as_str(),
        );
        text += &line;
    }
    text + "\nThis page is made by `cargo xtask providers-docs`.\n"
}

fn connect(provider: &Provider) -> String {
    let mut text = "## Connect\n\n".to_owned();
    for (index, step) in words::steps(provider).iter().enumerate() {
        text += &format!("{}. {}\n", index + 1, escaped(step));
        if index == 1 {
            let source = words::source(provider);
            let indented: String = source.lines().map(indented).collect();
            text += &format!("\n   ```toml\n{indented}   ```\n\n");
        }
    }
    let named = |wanted: bool| {
        let conf = provider.conf().filter(move |(_, _, is_needed)| *is_needed == wanted);
        conf.map(|(name, what, _)| format!("`{name}`, {}", escaped(what))).collect::<Vec<_>>().join("; ")
    };
    let (needed, of_handshakes) = (named(true), named(false));
    if !needed.is_empty() {
        text += &format!("\nIts requests are checked with what stands in `conf`: {needed}.\n");
    }
    if !of_handshakes.is_empty() {
        text += &format!("\nIts handshakes are answered only with what stands in `conf`: {of_handshakes}.\n");
    }
    text + "\n"
}

fn indented(line: &str) -> String {
    if line.is_empty() { "\n".to_owned() } else { format!("   {line}\n") }
}

fn identity(provider: &Provider) -> Vec<String> {
    let mut said = vec![format!("event id: {}", words::identity(provider))];
    let types = provider.type_templates();
    if !types.is_empty() {
        let types: Vec<String> = types.iter().map(|template| format!("`{template}`")).collect();
        said.push(format!("type: {}", types.join(", else ")));
    }
    said
}

fn section(text: &mut String, title: &str, sentences: &[String]) {
    *text += &format!("## {title}\n\n");
    for sentence in sentences {
        *text += &format!("- {}\n", escaped(sentence));
    }
    *text += "\n";
}

/// Text of a record in Markdown: what stands outside code must not become a tag, a table or a link.
fn escaped(text: &str) -> String {
    let mut in_code = false;
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '`' => in_code = !in_code,
            '<' | '>' | '*' | '_' | '[' | ']' if !in_code => safe.push('\\'),
            _ => {}
        }
        safe.push(character);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::providers::named;

    #[test]
    fn a_page_has_its_sections() {
        let page = page(named("github").unwrap());
        for part in ["# GitHub\n", "1. Make up a secret", "[sources.github]", "## What is not", "## Retries"]
        {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn the_index_names_every_provider() {
        let index = index();
        for name in Registry::builtin().names() {
            assert!(index.contains(&format!("]({name}.md)")), "{name}");
        }
    }

    #[test]
    fn what_looks_like_a_mark_is_none() {
        assert_eq!(escaped("x_y `a_b` <z>"), "x\\_y `a_b` \\<z\\>");
    }
}
