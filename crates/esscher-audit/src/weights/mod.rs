//! Weight matrices as they are stored, and products with them.
