//! Real checkpoints against transformers.
