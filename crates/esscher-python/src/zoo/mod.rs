//! The mechanisms of the zoo: the catalogue, the forms over batches, backward passes, streams and dynamical systems.
//!
//! The shapes of ports are Python's business (`python/esscher/zoo.py`): here arrays are rows with the heads side by side, and
//! a state is a pair of the tokens seen and an array (heads, numbers).

#[macro_use]
mod precision;

mod calls;
mod catalogue;
mod mechanism;
mod stream;
mod systems;
