//! Changing a configuration file as text, so that comments and order stay: a table is put at the end, or cut out.
//!
//! Knows TOML as text. What the keys mean, the server's configuration knows; it reads every result before anything is
//! written.

use toml::{Table, Value};

/// Why a table cannot be cut out of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotCut {
    /// It is not in it.
    Absent,
    /// It is written in a way that cannot be cut out without a change of something else.
    Inline,
}

/// The text with `[destinations.NAME]` and these keys at its end.
pub(crate) fn with_table(text: &str, name: &str, keys: &[(&str, Value)]) -> String {
    with_section(text, &format!("destinations.{name}"), keys)
}

/// The text with a section of this path and these keys at its end.
pub(crate) fn with_section(text: &str, path: &str, keys: &[(&str, Value)]) -> String {
    let mut text = text.to_owned();
    if !text.is_empty() {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push('\n');
    }
    text.push_str(&format!("[{path}]\n"));
    for (key, value) in keys {
        text.push_str(&format!("{key} = {value}\n"));
    }
    text
}

/// The text without the table `[destinations.NAME]` and those below it.
pub(crate) fn without_table(text: &str, name: &str) -> Result<String, NotCut> {
    let before: Table = text.parse().map_err(|_| NotCut::Inline)?;
    let known = before.get("destinations").and_then(|tables| tables.get(name)).is_some();
    if !known {
        return Err(NotCut::Absent);
    }
    let after = cut(text, name);
    // Read as TOML, exactly this table is gone; a header within a long text was none.
    if after.parse::<Table>().is_ok_and(|after| after == without(before, name)) {
        Ok(after)
    } else {
        Err(NotCut::Inline)
    }
}

/// The text in which the source's `secret` or `secrets`, a line of its own, is these references instead.
pub(crate) fn with_secrets(text: &str, source: &str, references: &[Value]) -> Result<String, NotCut> {
    let before: Table = text.parse().map_err(|_| NotCut::Inline)?;
    let table = before.get("sources").and_then(|sources| sources.get(source)).and_then(Value::as_table);
    let table = table.ok_or(NotCut::Absent)?;
    let (key, value) = match references {
        [one] => ("secret", one.clone()),
        several => ("secrets", Value::from(several.to_vec())),
    };
    let mut wanted = table.clone();
    wanted.remove("secret");
    wanted.remove("secrets");
    wanted.insert(key.to_owned(), value.clone());
    let after = replaced(text, source, &format!("{key} = {value}\n"));
    // Read as TOML, nothing but the secrets of this source has changed.
    let found: Table = after.parse().map_err(|_| NotCut::Inline)?;
    let mut expected = before;
    if let Some(Value::Table(sources)) = expected.get_mut("sources") {
        sources.insert(source.to_owned(), Value::Table(wanted));
    }
    if found == expected { Ok(after) } else { Err(NotCut::Inline) }
}

/// The first line of the source's table that begins with its secrets is this one.
fn replaced(text: &str, source: &str, line: &str) -> String {
    let mut within = false;
    let mut done = false;
    let replace = |old: &str| {
        if let Some(path) = header(old) {
            within = path == ["sources", source];
        }
        let key = old.split('=').next().unwrap_or_default().trim();
        if within && !done && (key == "secret" || key == "secrets") {
            done = true;
            return line.to_owned();
        }
        old.to_owned()
    };
    text.split_inclusive('\n').map(replace).collect()
}

fn without(mut root: Table, name: &str) -> Table {
    if let Some(Value::Table(tables)) = root.get_mut("destinations") {
        tables.remove(name);
        // Without its tables, `destinations` is not written any more.
        if tables.is_empty() {
            root.remove("destinations");
        }
    }
    root
}

/// Every line from a header of the table to the next header of another. Comments right above that one are its own.
fn cut(text: &str, name: &str) -> String {
    let mut kept = String::new();
    let mut within = false;
    let mut undecided = String::new();
    for line in text.split_inclusive('\n') {
        if let Some(path) = header(line) {
            within = path.first().is_some_and(|part| part == "destinations")
                && path.get(1).is_some_and(|part| part == name);
            keep(&mut kept, &mut undecided);
        }
        match line.trim_start() {
            _ if !within => kept.push_str(line),
            comment if comment.starts_with('#') => undecided.push_str(line),
            blank if blank.trim().is_empty() => {
                // What stands before a gap belonged to the table.
                undecided.clear();
                undecided.push_str(line);
            }
            _ => undecided.clear(),
        }
    }
    keep(&mut kept, &mut undecided);
    kept
}

/// Gaps do not add up where something was cut out.
fn keep(kept: &mut String, undecided: &mut String) {
    let is_gap = kept.is_empty() || kept.ends_with("\n\n");
    kept.push_str(if is_gap { undecided.trim_start() } else { undecided });
    undecided.clear();
}

/// The path of a line such as `[destinations."a b".equals]  # why`.
fn header(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start();
    if !line.starts_with('[') {
        return None;
    }
    let parsed: Table = line.parse().ok()?;
    let mut path = Vec::new();
    let mut at = &parsed;
    while let Some((key, value)) = at.iter().next() {
        path.push(key.clone());
        at = match value {
            Value::Table(table) => table,
            Value::Array(items) => items.first()?.as_table()?,
            _ => return None,
        };
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# mine
[sources.stripe] # the shop
secret = { env = \"A\" }

# the app
[destinations.app]
push = \"https://a.example/\" # where

[destinations.app.equals]
\"/live\" = true

# the worker
[destinations.worker]
pull = true
";

    #[test]
    fn a_table_is_put_at_the_end_and_cut_out_again() {
        let keys =
            [("push", Value::from("http://localhost:3000/\"x\"")), ("types", Value::from(vec!["a.*"]))];
        for text in ["", "# only this", TEXT] {
            let longer = with_table(text, "new", &keys);
            let read: Table = longer.parse().unwrap();
            assert_eq!(read["destinations"]["new"]["push"].as_str(), Some("http://localhost:3000/\"x\""));
            assert!(longer.starts_with(text), "{longer}");
            assert_eq!(without_table(&longer, "new").unwrap().trim_end(), text.trim_end());
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        let cut = without_table(TEXT, "app").unwrap();
        assert_eq!(
            cut,
            "# mine\n[sources.stripe] # the shop\nsecret = { env = \"A\" }\n\n# the app\n\n# the worker\n\
             [destinations.worker]\npull = true\n"
        );
        let noted = format!("{TEXT}\n# the end\n");
        assert!(without_table(&noted, "worker").unwrap().ends_with("# the worker\n\n# the end\n"));
        let cut = without_table(TEXT, "worker").unwrap();
        assert!(cut.ends_with("\"/live\" = true\n\n# the worker\n"), "{cut}");
    }

    #[test]
    fn secrets_are_replaced_and_nothing_else() {
        let reference = |name: &str| Value::Table(Table::from_iter([("env".to_owned(), Value::from(name))]));
        let two = with_secrets(TEXT, "stripe", &[reference("B"), reference("A")]).unwrap();
        let line = "secrets = [{ env = \"B\" }, { env = \"A\" }]";
        assert_eq!(two, TEXT.replace("secret = { env = \"A\" }", line));
        assert_eq!(with_secrets(&two, "stripe", &[reference("A")]).unwrap(), TEXT);
        assert_eq!(with_secrets(TEXT, "github", &[reference("A")]), Err(NotCut::Absent));
        let inline = "[sources]\nstripe = { secret = { env = \"A\" } }\n";
        assert_eq!(with_secrets(inline, "stripe", &[reference("B")]), Err(NotCut::Inline));
        let over_lines = "[sources.stripe]\nsecrets = [\n  { env = \"A\" },\n]\n";
        assert_eq!(with_secrets(over_lines, "stripe", &[reference("B")]), Err(NotCut::Inline));
    }

    #[test]
    fn what_cannot_be_cut_out_is_left() {
        assert_eq!(without_table(TEXT, "other"), Err(NotCut::Absent));
        for text in [
            "destinations.app.pull = true\n",
            "[destinations]\napp = { pull = true }\n",
            "[destinations.app]\npull = true\n[x]\nlong = '''\n[destinations.app]\n'''\n",
        ] {
            assert_eq!(without_table(text, "app"), Err(NotCut::Inline), "{text}");
        }
    }
}
