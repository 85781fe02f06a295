//! The files store from outside.

mod backend;
mod cut;
mod folder;
mod power;
mod receipts;
<<<<<<< HEAD
mod refusal;
=======
>>>>>>> 1866a7074b2deaf757679bb9e3814fe18ea62cf4
mod seed;
mod trials;

pub(crate) use folder::child;
pub(crate) use trials::trials;
