//! JSON as JavaScript writes it, for the sender that signs a sorted copy of its document.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The text as it stands between the quotation marks of a JSON string. Nothing if it is no UTF-8.
pub(super) fn escape(bytes: &[u8]) -> Option<Vec<u8>> {
    let quoted = Value::from(std::str::from_utf8(bytes).ok()?).to_string();
    Some(quoted.as_bytes()[1..quoted.len() - 1].to_vec())
}

/// The document with the members of every object sorted, written without blanks. Nothing for what is no JSON
/// document of at most 128 levels.
pub(super) fn sorted(document: &[u8]) -> Option<Vec<u8>> {
    let value = serde_json::from_slice(document).ok()?;
    let mut text = String::with_capacity(document.len());
    write(&value, &mut text)?;
    Some(text.into_bytes())
}

fn write(value: &Value, text: &mut String) -> Option<()> {
    match value {
        Value::Object(members) => write_object(members, text)?,
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                write(item, text)?;
            }
            text.push(']');
        }
        Value::Number(number) => write_number(number.as_f64()?, text)?,
        other => write!(text, "{other}").ok()?,
    }
    Some(())
}

fn write_object(members: &Map<String, Value>, text: &mut String) -> Option<()> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_cached_key(|(name, _)| {
        (index(name).unwrap_or(u32::MAX), name.encode_utf16().collect::<Vec<_>>())
    });
    text.push('{');
    for (place, (name, value)) in members.into_iter().enumerate() {
        text.push_str(if place == 0 { "" } else { "," });
        write!(text, "{}:", Value::from(name.as_str())).ok()?;
        write(value, text)?;
    }
    text.push('}');
    Some(())
}

/// A name that is an array index: JavaScript puts these first, as numbers.
fn index(name: &str) -> Option<u32> {
    let number: u32 = name.parse().ok()?;
    (number < u32::MAX && number.to_string() == name).then_some(number)
}

/// ECMAScript's `Number::toString`: the shortest digits, with an exponent only beyond 21 places.
fn write_number(number: f64, text: &mut String) -> Option<()> {
    if number == 0.0 {
        text.push('0');
        return Some(());
    }
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e')?;
    let digits = mantissa.replace('.', "");
    let (length, point) = (i32::try_from(digits.len()).ok()?, exponent.parse::<i32>().ok()? + 1);
    text.push_str(if number < 0.0 { "-" } else { "" });
    let at = usize::try_from(point).unwrap_or_default();
    match point {
        _ if length <= point && point <= 21 => write!(text, "{digits:0<at$}"),
        1..=21 => write!(text, "{}.{}", &digits[..at], &digits[at..]),
        -5..=0 => write!(text, "0.{}{digits}", "0".repeat(usize::try_from(-point).ok()?)),
        _ => {
            let dot = if length == 1 { "" } else { "." };
            write!(text, "{}{dot}{}e{:+}", &digits[..1], &digits[1..], point - 1)
        }
    }
    .ok()
}
