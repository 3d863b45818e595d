//! Choices by name: one word for each, written and read here alone.

/// Gives a choice all its values, their names, and a way back from a name.
macro_rules! names {
    ($choice:ident, $kind:literal, { $($value:ident => $name:literal),+ $(,)? }) => {
        impl $choice {
            /// Every choice there is.
            pub const ALL: [$choice; [$($name),+].len()] = [$($choice::$value),+];

            /// The word in specifications, tables and files.
            pub const fn name(self) -> &'static str {
                match self {
                    $($choice::$value => $name),+
                }
            }
        }

        impl std::fmt::Display for $choice {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.name())
            }
        }

        impl std::str::FromStr for $choice {
            type Err = $crate::Error;

            fn from_str(name: &str) -> Result<Self, $crate::Error> {
                let found = $choice::ALL.into_iter().find(|choice| choice.name() == name);
                found.ok_or_else(|| $crate::Error::UnknownName {
                    kind: $kind,
                    name: name.to_string(),
                    expected: [$($name),+].join(" or "),
                })
            }
        }
    };
}

pub(crate) use names;
