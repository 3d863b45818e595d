//! Checkpoints: bytes of a file in one of the field's formats -> an architecture and named tensors.
