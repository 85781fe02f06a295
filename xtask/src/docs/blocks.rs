//! The fenced code blocks of a Markdown file, and the comments that start something beside them.

/// The language of a command that runs beside the blocks after it: a comment `<!-- background: COMMAND -->`.
pub(super) const BACKGROUND: &str = "background";

/// One fenced block.
#[derive(Debug, PartialEq)]
pub(super) struct Block {
    /// The first word after the fence; empty if there is none.
    pub(super) language: String,
    /// The words after the language.
    pub(super) words: Vec<String>,
    /// Where the fence stands, from 1.
    pub(super) line: usize,
    /// The lines between the fences, each with its line end.
    pub(super) text: String,
}

impl Block {
    /// Whether the author wants it left alone.
    pub(super) fn is_ignored(&self) -> bool {
        self.words.iter().any(|word| word == "ignore")
    }
}

/// All blocks, in order; one that is never closed ends with the file.
pub(super) fn parse(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(command) = background(line) {
            let language = BACKGROUND.to_owned();
            blocks.push(Block { language, words: Vec::new(), line: index + 1, text: command.to_owned() });
        }
        let Some((indent, fence)) = opening(line) else { continue };
        let mut info =
            line[indent + fence..].split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned);
        let language = info.next().unwrap_or_default();
        let words = info.collect();
        let text = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| !closes(line, fence))
            .fold(String::new(), |text, line| text + unindented(line, indent) + "\n");
        blocks.push(Block { language, words, line: index + 1, text });
    }
    blocks
}

fn background(line: &str) -> Option<&str> {
    let comment = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?;
    Some(comment.trim().strip_prefix("background:")?.trim())
}

/// The indentation and the length of the fence, where the line opens a block.
fn opening(line: &str) -> Option<(usize, usize)> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let fence = line[indent..].chars().take_while(|&c| c == '`').count();
    let info = &line[indent + fence..];
    (fence >= 3 && !info.contains('`')).then_some((indent, fence))
}

fn closes(line: &str, fence: usize) -> bool {
    let line = line.trim();
    line.len() >= fence && line.chars().all(|c| c == '`')
}

fn unindented(line: &str, indent: usize) -> &str {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    &line[blanks.min(indent)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(markdown: &str, expected: &[(&str, usize, &str)]) {
        let blocks = parse(markdown);
        let found: Vec<_> = blocks.iter().map(|b| (b.language.as_str(), b.line, b.text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_block_has_its_language_line_and_text() {
        check("text\n```sh\na\n\nb\n```\nmore", &[("sh", 2, "a\n\nb\n")]);
    }

    #[test]
    fn a_longer_fence_holds_shorter_ones() {
        check("````text\n```sh\na\n```\n````\n", &[("text", 1, "```sh\na\n```\n")]);
    }

    #[test]
    fn the_indentation_of_a_list_is_taken_off() {
        check("1. so\n   ```sh\n   a\n     b\n   ```\n", &[("sh", 2, "a\n  b\n")]);
    }

    #[test]
    fn code_within_a_line_opens_nothing() {
        check("```a``` b\n`x`\n", &[]);
    }

    #[test]
    fn an_unlabelled_block_has_no_language() {
        check("```\na\n```\n", &[("", 1, "a\n")]);
    }

    #[test]
    fn a_comment_names_a_command_that_runs_beside() {
        check("<!-- background: a b -->\n<!-- other -->\n", &[("background", 1, "a b")]);
    }

    #[test]
    fn ignore_is_a_word_after_the_language() {
        let blocks = parse("```sh ignore\n```\n```rust,ignore\n```\n```toml a.toml\n```\n");
        assert_eq!(blocks.iter().map(Block::is_ignored).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(blocks[2].words, ["a.toml"]);
    }
}
