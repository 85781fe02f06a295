//! Events on their way from one store to another, as JSON lines: how one is written, how a store is exported in pages,
//! and how a line is read again. The API and the verbs share it. It knows nothing of HTTP, files or terminals.

mod line;
mod page;
mod parse;

pub use line::{EventLine, FORMAT, HeaderField, LineError, line_bytes_max};
pub use page::{ExportEnd, ExportPage, ExportRequest, event_line, export_page};
pub use parse::{LineProblem, ParsedLine, parse_line};
