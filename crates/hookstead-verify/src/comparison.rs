//! Whether two bodies of one event say the same, apart from what the provider changes between two sendings.
//!
//! A record names the JSON values that may differ (an attempt counter, a time of sending). The digest here is
//! over all the other tokens of the document, so that a later body can be compared with one that was erased. It
//! knows nothing of identities or stores, and a body that is not one plain JSON document has no such digest:
//! then only equal bytes are the same.

use std::borrow::Cow;
use std::fmt;

use aws_lc_rs::digest;

use crate::provider::Confidence;

/// The way in which tokens are fed into the digest. Change it with any change below: stored digests of another
/// version are not comparable.
const VERSION: u32 = 1;

/// Deepest nesting of a document that is compared: what providers send has a tenth of it.
const DEPTH_MAX: usize = 128;

/// Longest document that is compared, in bytes; no provider sends more.
const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Most pointers of a record.
const POINTERS_MAX: usize = 32;

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The values of a provider's JSON that may differ between two sendings of one event.
///
/// A pointer is one of RFC 6901, where a step `*` stands for every item of an array.
///
/// ```
/// use hookstead_verify::Volatile;
///
/// let volatile = Volatile::new(["/pending_webhooks"])?;
/// let first = volatile.digest(br#"{"id":"evt_1","pending_webhooks":2}"#);
/// let again = volatile.digest(br#"{ "id": "evt_1", "pending_webhooks": 1 }"#);
/// let other = volatile.digest(br#"{"id":"evt_2","pending_webhooks":2}"#);
/// assert!(first.is_some() && first == again && first != other);
/// assert_eq!(volatile.digest(b"not json"), None);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Volatile {
    pointers: Vec<Pointer>,
    rule: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pointer {
    text: String,
    steps: Vec<Step>,
    confidence: Confidence,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Every item of an array; never a key.
    Any,
    Name(Vec<u8>),
}

/// A digest of what a body says apart from its volatile values.
///
/// Two of them can be compared only if their [`rule`](Self::rule) is the same; otherwise nothing is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComparisonDigest {
    /// The rule by which it was made: it changes with the pointers and with the way of digesting.
    pub rule: u32,
    /// SHA-256 over the tokens that are left.
    pub digest: [u8; 32],
}

impl fmt::Debug for ComparisonDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:08x}:{}", self.rule, hex::encode(self.digest))
    }
}

impl Volatile {
    /// Values at these pointers.
    ///
    /// # Errors
    ///
    /// In words, if a pointer does not start with `/`, or if there are more than 32.
    pub fn new<'p>(pointers: impl IntoIterator<Item = &'p str>) -> Result<Self, String> {
        Self::with_confidence(pointers.into_iter().map(|pointer| (pointer, Confidence::Own)))
    }

    pub(crate) fn with_confidence<'p>(
        pointers: impl IntoIterator<Item = (&'p str, Confidence)>,
    ) -> Result<Self, String> {
        let pointers =
            pointers.into_iter().map(|(text, sure)| pointer(text, sure)).collect::<Result<Vec<_>, _>>()?;
        if pointers.len() > POINTERS_MAX {
            return Err(format!("{} volatile pointers, more than {POINTERS_MAX}", pointers.len()));
        }
        let rule = rule(&pointers);
        Ok(Self { pointers, rule })
    }

    /// Whether no value is volatile: then bytes are compared, and there are no digests.
    pub fn is_empty(&self) -> bool {
        self.pointers.is_empty()
    }

    /// The pointers as they are written, each with how sure it is.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Confidence)> {
        self.pointers.iter().map(|pointer| (pointer.text.as_str(), pointer.confidence))
    }

    /// The rule of the digests that are made now.
    pub fn rule(&self) -> u32 {
        self.rule
    }

    /// The digest of a document: over its tokens in their order, in the spelling in which they stand there, with
    /// white space and the volatile members left out. That a volatile member is there at all makes no difference.
    ///
    /// `None` if nothing is volatile, and for what is not one JSON document of at most 32 MiB and 128 levels;
    /// then only equal bytes are the same.
    pub fn digest(&self, document: &[u8]) -> Option<ComparisonDigest> {
        if self.is_empty() || document.len() > DOCUMENT_BYTES_MAX {
            return None;
        }
        let document = document.strip_prefix(BYTE_ORDER_MARK).unwrap_or(document);
        let mut walk =
            Walk { pointers: &self.pointers, rest: document, hash: digest::Context::new(&digest::SHA256) };
        walk.value(0, u32::MAX, Mode::Kept)?;
        walk.blanks();
        if !walk.rest.is_empty() {
            return None;
        }
        let mut found = [0; 32];
        found.copy_from_slice(walk.hash.finish().as_ref());
        Some(ComparisonDigest { rule: self.rule, digest: found })
    }
}

fn pointer(text: &str, confidence: Confidence) -> Result<Pointer, String> {
    let Some(steps) = text.strip_prefix('/') else {
        return Err(format!("a JSON pointer starts with `/`, not with `{text}`"));
    };
    let step = |step: &str| match step {
        "*" => Step::Any,
        name => Step::Name(name.replace("~1", "/").replace("~0", "~").into_bytes()),
    };
    Ok(Pointer { text: text.to_owned(), steps: steps.split('/').map(step).collect(), confidence })
}

/// A number that stands for version and pointers, whatever their order.
fn rule(pointers: &[Pointer]) -> u32 {
    let mut texts: Vec<&str> = pointers.iter().map(|pointer| pointer.text.as_str()).collect();
    texts.sort_unstable();
    let text = format!("hookstead comparison {VERSION}\n{}", texts.join("\n"));
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    digest.as_ref().iter().take(4).fold(0, |rule, byte| rule << 8 | u32::from(*byte))
}

/// Whether tokens go into the digest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Kept,
    LeftOut,
}

/// A walk over a document. Every function takes its part off the front, and gives nothing where the grammar
/// (RFC 8259) is broken.
struct Walk<'d, 'p> {
    pointers: &'p [Pointer],
    rest: &'d [u8],
    hash: digest::Context,
}

impl<'d> Walk<'d, '_> {
    /// One value; `matching` has a bit for each pointer whose steps so far lead here.
    fn value(&mut self, depth: usize, matching: u32, mode: Mode) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.blanks();
        match self.rest.first()? {
            b'{' => self.object(depth, matching, mode),
            b'[' => self.array(depth, matching, mode),
            b'"' => {
                let text = self.string()?;
                self.feed(text, mode);
                Some(())
            }
            _ => {
                let text = self.word()?;
                self.feed(text, mode);
                Some(())
            }
        }
    }

    fn object(&mut self, depth: usize, matching: u32, mode: Mode) -> Option<()> {
        self.feed(b"{", mode);
        self.skip(b'{')?;
        if !self.closes(b'}') {
            loop {
                self.blanks();
                let key = self.string()?;
                self.blanks();
                self.skip(b':')?;
                let below = self.below(depth, matching, |step| is_key(step, key));
                let mode = if self.is_volatile(depth + 1, below) { Mode::LeftOut } else { mode };
                self.feed(key, mode);
                self.feed(b":", mode);
                self.value(depth + 1, below, mode)?;
                self.feed(b",", mode);
                if self.ends(b'}')? {
                    break;
                }
            }
        }
        self.feed(b"}", mode);
        Some(())
    }

    fn array(&mut self, depth: usize, matching: u32, mode: Mode) -> Option<()> {
        self.feed(b"[", mode);
        self.skip(b'[')?;
        if !self.closes(b']') {
            for index in 0_usize.. {
                let below = self.below(depth, matching, |step| is_index(step, index));
                let mode = if self.is_volatile(depth + 1, below) { Mode::LeftOut } else { mode };
                self.value(depth + 1, below, mode)?;
                self.feed(b",", mode);
                if self.ends(b']')? {
                    break;
                }
            }
        }
        self.feed(b"]", mode);
        Some(())
    }

    /// The pointers that go on with this step.
    fn below(&self, depth: usize, matching: u32, is_step: impl Fn(&Step) -> bool) -> u32 {
        let mut below = 0;
        for (bit, pointer) in self.pointers.iter().enumerate() {
            let here = matching >> bit & 1 == 1 && pointer.steps.get(depth).is_some_and(&is_step);
            below |= u32::from(here) << bit;
        }
        below
    }

    fn is_volatile(&self, depth: usize, matching: u32) -> bool {
        let ends =
            |(bit, pointer): (usize, &Pointer)| matching >> bit & 1 == 1 && pointer.steps.len() == depth;
        self.pointers.iter().enumerate().any(ends)
    }

    fn feed(&mut self, token: &[u8], mode: Mode) {
        if mode == Mode::Kept {
            self.hash.update(token);
        }
    }

    fn blanks(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        (*first == byte).then_some(())
    }

    /// Whether an empty list ends here.
    fn closes(&mut self, byte: u8) -> bool {
        self.blanks();
        self.rest.first() == Some(&byte) && self.skip(byte).is_some()
    }

    /// Whether the list ends here; otherwise another item must follow.
    fn ends(&mut self, byte: u8) -> Option<bool> {
        if self.closes(byte) {
            return Some(true);
        }
        self.skip(b',').map(|()| false)
    }

    /// A string with its quotation marks.
    fn string(&mut self) -> Option<&'d [u8]> {
        let text = self.rest;
        self.skip(b'"')?;
        let mut at = 1;
        loop {
            match text.get(at)? {
                b'"' => break,
                b'\\' => at += 1 + escape(&text[at + 1..])?,
                0..0x20 => return None,
                _ => at += 1,
            }
        }
        let (string, rest) = text.split_at(at + 1);
        self.rest = rest;
        Some(string)
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<&'d [u8]> {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let length = self.rest.iter().take_while(|byte| plain(byte)).count();
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        (matches!(word, b"true" | b"false" | b"null") || is_number(word)).then_some(word)
    }
}

/// Bytes of an escape after its backslash.
fn escape(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(1),
        [b'u', digits @ ..] => digits.get(..4)?.iter().all(u8::is_ascii_hexdigit).then_some(5),
        _ => None,
    }
}

fn is_number(word: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = word.strip_prefix(b"-").unwrap_or(word);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    rest = &rest[whole..];
    if let [b'.', fraction @ ..] = rest {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent =
            exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let length = digits(exponent);
        return length > 0 && length == exponent.len();
    }
    rest.is_empty()
}

fn is_key(step: &Step, quoted: &[u8]) -> bool {
    let Step::Name(name) = step else { return false };
    plain_key(quoted).is_some_and(|key| key.as_ref() == name.as_slice())
}

/// The key without its quotation marks and escapes.
fn plain_key(quoted: &[u8]) -> Option<Cow<'_, [u8]>> {
    let inside = &quoted[1..quoted.len() - 1];
    if !inside.contains(&b'\\') {
        return Some(Cow::Borrowed(inside));
    }
    serde_json::from_slice::<String>(quoted).ok().map(|key| Cow::Owned(key.into_bytes()))
}

fn is_index(step: &Step, index: usize) -> bool {
    match step {
        Step::Any => true,
        Step::Name(name) => index.to_string().as_bytes() == name.as_slice(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pointers: &[&str], document: &str) -> Option<ComparisonDigest> {
        Volatile::new(pointers.iter().copied()).unwrap().digest(document.as_bytes())
    }

    fn same(pointers: &[&str], one: &str, other: &str) -> bool {
        let (one, other) = (of(pointers, one), of(pointers, other));
        assert!(one.is_some() && other.is_some(), "{one:?} {other:?}");
        one == other
    }

    #[test]
    fn only_volatile_members_and_white_space_may_differ() {
        let volatile = &["/n", "/a/*/try", "/meta/at"];
        assert!(same(volatile, r#"{"id":1,"n":1}"#, r#"{ "id" : 1 , "n" : {"x":[2]} }"#));
        assert!(same(volatile, r#"{"id":1,"n":1}"#, r#"{"id":1}"#));
        assert!(same(volatile, r#"{"n":1}"#, r#"{"\u006e":2}"#));
        assert!(same(
            volatile,
            r#"{"a":[{"try":1,"b":1},{"try":1}]}"#,
            r#"{"a":[{"try":2,"b":1},{"try":3}]}"#
        ));
        assert!(same(volatile, r#"{"meta":{"at":1}}"#, r#"{"meta":{"at":null}}"#));
        for other in [
            r#"{"id":2,"n":1}"#,
            r#"{"id":1.0,"n":1}"#,
            r#"{"id":"1","n":1}"#,
            r#"{"id":1,"m":1}"#,
            r#"{"id":[1],"n":1}"#,
            r#"{"id":1,"id":1,"n":1}"#,
            r#"[{"id":1,"n":1}]"#,
            r#"{"n":1}"#,
            r#"{"id":1,"x":{"n":1}}"#,
        ] {
            assert!(!same(volatile, r#"{"id":1,"n":1}"#, other), "{other}");
        }
        assert!(!same(volatile, r#"{"a":{"*":{"try":1}}}"#, r#"{"a":{"*":{"try":2}}}"#));
        assert!(!same(volatile, r#"{"a":[[{"try":1}]]}"#, r#"{"a":[[{"try":2}]]}"#));
        assert!(!same(volatile, "123456789012345678901", "123456789012345678902"));
        assert!(!same(volatile, r#"["a","b"]"#, r#"["a,b"]"#));
    }

    #[test]
    fn what_is_no_document_has_no_digest() {
        for broken in [
            "",
            " ",
            "{",
            "{]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "[1,]",
            "[1 2]",
            "[1]]",
            "01",
            "1.",
            "1e",
            "-",
            ".5",
            "+1",
            "tru",
            "nul",
            "\"a",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "{a:1}",
            "{} {}",
            "\u{1}",
            "a=b&c=d",
        ] {
            assert_eq!(of(&["/n"], broken), None, "{broken:?}");
        }
        for odd in ["0", "-0.5e+10", "\"\\ud800\"", "[]", "{}", " [ ] ", "\u{feff}{}", "null"] {
            assert!(of(&["/n"], odd).is_some(), "{odd:?}");
        }
        assert!(Volatile::new(["/n"]).unwrap().digest(b"\"\xff\"").is_some());
        assert_eq!(of(&[], "{}"), None);
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(of(&["/n"], &nested(DEPTH_MAX)).is_some());
        assert_eq!(of(&["/n"], &nested(DEPTH_MAX + 2)), None);
        assert_eq!(of(&["/n"], &"[".repeat(1_000_000)), None);
        assert_eq!(of(&["/n"], &format!("{}1", " ".repeat(DOCUMENT_BYTES_MAX))), None);
    }

    #[test]
    fn rules_name_their_pointers() {
        let rule = |pointers: &[&str]| Volatile::new(pointers.iter().copied()).unwrap().rule();
        assert_eq!(rule(&["/a", "/b"]), rule(&["/b", "/a"]));
        assert_ne!(rule(&["/a"]), rule(&["/b"]));
        assert!(Volatile::new(["a"]).is_err());
        assert!(Volatile::new(["/a"; POINTERS_MAX + 1]).is_err());
        // Stored digests depend on this: a change needs another VERSION.
        assert_eq!(
            format!("{:?}", of(&["/n"], r#"{"n":1,"a":[true,"x"]}"#).unwrap()),
            "515ec876:8d380625ade448f73b86ff5ccbdb660bec13ec5ae6225018bb5a039b043a8d1e"
        );
    }
}
