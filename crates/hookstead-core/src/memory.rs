//! stub
pub struct MemoryStore;
