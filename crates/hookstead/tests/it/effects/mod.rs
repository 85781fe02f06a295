//! Consumers that have statements of their own committed together with `done`.

mod kills;
mod rules;
