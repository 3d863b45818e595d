//! Vocabularies: text -> tokens, as each checkpoint was trained.
