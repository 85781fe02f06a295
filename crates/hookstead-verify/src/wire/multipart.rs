//! Multipart forms (RFC 7578), as far as a signature's fields stand in one: names and values, and nothing of files
//! beside their names and bytes. A body that is not exactly such a form has no fields at all, since two readers of it
//! could find different ones.

/// Most parts of a form that is read.
const PARTS_MAX: usize = 256;

/// Most bytes of the header lines of a part.
const PART_HEAD_BYTES_MAX: usize = 8 * 1024;

/// The longest boundary that RFC 2046 allows.
const BOUNDARY_BYTES_MAX: usize = 70;

/// The boundary that a `Content-Type` names, if it is that of a multipart form.
pub(crate) fn boundary(content_type: &[u8]) -> Option<&[u8]> {
    let (essence, parameters) = cut(content_type, b';')?;
    if !essence.trim_ascii().eq_ignore_ascii_case(b"multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, b"boundary")?;
    (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()).then_some(boundary)
}

/// The values of all parts of that name; none if the body is no form with this boundary.
pub(crate) fn values<'a>(body: &'a [u8], boundary: &[u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    let parts = parts(body, boundary).unwrap_or_default();
    parts.into_iter().filter(move |(found, _)| *found == name.as_bytes()).map(|(_, value)| value)
}

/// Name and value of each part, in order.
fn parts<'a>(body: &'a [u8], boundary: &[u8]) -> Option<Vec<(&'a [u8], &'a [u8])>> {
    let delimiter = [b"\r\n--", boundary].concat();
    let mut rest = body.strip_prefix(&delimiter[2..])?;
    let mut parts = Vec::new();
    loop {
        if let Some(behind) = rest.strip_prefix(b"--") {
            return matches!(behind, b"" | b"\r\n").then_some(parts);
        }
        if parts.len() == PARTS_MAX {
            return None;
        }
        let part = rest.strip_prefix(b"\r\n")?;
        let end = end_of_part(part, &delimiter)?;
        parts.push(name_and_value(&part[..end])?);
        rest = &part[end + delimiter.len()..];
    }
}

/// Where the next delimiter begins: its text, and behind it the end of its line or of the form.
fn end_of_part(part: &[u8], delimiter: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + part[from..].iter().position(|byte| *byte == b'\r')?;
        let behind = part[at..].strip_prefix(delimiter);
        if behind.is_some_and(|behind| behind.starts_with(b"\r\n") || behind.starts_with(b"--")) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn name_and_value(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let within = &part[..part.len().min(PART_HEAD_BYTES_MAX)];
    let head = within.windows(4).position(|window| window == b"\r\n\r\n")?;
    let mut names = part[..head].split(|byte| *byte == b'\n').filter_map(disposition);
    let (name, None) = (names.next()?, names.next()) else { return None };
    Some((parameter(name, b"name")?, &part[head + 4..]))
}

/// The parameters of a `Content-Disposition: form-data` line.
fn disposition(line: &[u8]) -> Option<&[u8]> {
    let (name, value) = cut(line, b':')?;
    let (kind, parameters) = cut(value, b';')?;
    let is_it = name.eq_ignore_ascii_case(b"content-disposition")
        && kind.trim_ascii().eq_ignore_ascii_case(b"form-data");
    is_it.then_some(parameters)
}

/// The one parameter of that name, without its quotation marks; none where there are escapes in any of them.
fn parameter<'a>(mut parameters: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut found = None;
    while !parameters.trim_ascii().is_empty() {
        let (key, rest) = cut(parameters, b'=')?;
        let (value, behind) = match rest.trim_ascii_start().strip_prefix(b"\"") {
            Some(quoted) => {
                let (value, behind) = cut(quoted, b'"')?;
                let behind = behind.trim_ascii_start();
                (value, if behind.is_empty() { behind } else { behind.strip_prefix(b";")? })
            }
            None => {
                let (value, behind) = cut(rest, b';').unwrap_or((rest, b""));
                (value.trim_ascii(), behind)
            }
        };
        if value.contains(&b'\\') {
            return None;
        }
        if key.trim_ascii().eq_ignore_ascii_case(name) && found.replace(value).is_some() {
            return None;
        }
        parameters = behind;
    }
    found
}

/// What is before and behind the first such byte.
fn cut(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|byte| *byte == at)?;
    Some((&text[..place], &text[place + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B\r\n\
        content-disposition: FORM-DATA; filename=\"x;name=y.bin\"; name=file\r\nContent-Type: text/plain\r\n\r\n\
        \r\n--fake\r\n--Bx\r\n--B\n\r\n--B--\r\n";

    fn found(body: &str, name: &str) -> Vec<String> {
        values(body.as_bytes(), b"B", name).map(|value| String::from_utf8_lossy(value).into_owned()).collect()
    }

    #[test]
    fn a_boundary_is_that_of_a_multipart_form() {
        let check = |content_type: &str, expected: Option<&str>| {
            assert_eq!(boundary(content_type.as_bytes()), expected.map(str::as_bytes), "{content_type}");
        };
        check("multipart/form-data; boundary=HKBXb", Some("HKBXb"));
        check("Multipart/Form-Data;charset=utf-8; Boundary=\"a b\" ", Some("a b"));
        check("multipart/form-data", None);
        check("multipart/form-data; boundary=", None);
        check("multipart/form-data; boundary=a; boundary=b", None);
        check("multipart/form-data; boundary=\"a", None);
        check("multipart/mixed; boundary=a", None);
        check(&format!("multipart/form-data; boundary={}", "a".repeat(71)), None);
    }

    #[test]
    fn fields_are_found_by_their_name_and_end_at_their_own_boundary() {
        assert_eq!(found(FORM, "a"), ["1"]);
        assert_eq!(found(FORM, "file"), ["\r\n--fake\r\n--Bx\r\n--B\n"]);
        assert_eq!(found(FORM, "y.bin"), [""; 0]);
        let twice = FORM.replace("name=file", "name=a");
        assert_eq!(found(&twice, "a").len(), 2, "the caller takes neither");
    }

    #[test]
    fn what_is_no_form_to_its_end_has_no_fields() {
        for (what, body) in [
            ("nothing", String::new()),
            ("a text before it", format!("x{FORM}")),
            ("no end", FORM.trim_end().trim_end_matches('-').to_owned()),
            ("a text behind it", format!("{FORM}x")),
            ("line feeds", FORM.replace("\r\n", "\n")),
            ("no disposition", FORM.replace("Content-Disposition", "X")),
            (
                "two dispositions",
                FORM.replace("\r\n\r\n1", "\r\nContent-Disposition: form-data; name=b\r\n\r\n1"),
            ),
            ("two names", FORM.replace("name=\"a\"", "name=\"a\"; name=\"b\"")),
            ("an escape", FORM.replace("name=\"a\"", "name=\"a\\\\\"")),
            ("no name", FORM.replace("; name=file", "")),
            ("no end of the head", FORM.replace("\r\n\r\n1", "\r\n1")),
        ] {
            assert_ne!(body, FORM, "{what}");
            assert_eq!(found(&body, "a"), [""; 0], "{what}");
        }
    }

    #[test]
    fn parts_and_their_heads_are_bounded() {
        let part = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n";
        let form = |count: usize| format!("{}--B--", part.repeat(count));
        assert_eq!(found(&form(PARTS_MAX), "a").len(), PARTS_MAX);
        assert_eq!(found(&form(PARTS_MAX + 1), "a").len(), 0);
        let head = format!("--B\r\nX: {}\r\n", "x".repeat(PART_HEAD_BYTES_MAX));
        assert_eq!(found(&form(1).replacen("--B\r\n", &head, 1), "a").len(), 0);
    }
}
