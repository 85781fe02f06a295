//! Overload: more events than a slow disk can take, from senders who do not wait.

mod load;
mod phase;
mod recovery;
mod run;
