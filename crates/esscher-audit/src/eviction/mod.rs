//! Eviction: what people use today, a head's context cut down to a budget of exact tokens.
