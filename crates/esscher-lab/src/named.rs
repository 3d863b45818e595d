//! Enums whose values have one name each: as files, tables, messages and doors spell them.

use crate::{Column, Scalar, Value};
use esscher_core::concentration::Quantity;
use esscher_core::{Accuracy, Ending};

/// An enum with one name for each value.
pub trait Named: Copy + PartialEq + 'static {
    /// Every value, in the order of documents.
    const ALL: &'static [Self];

    /// The one name of this value, in files and at every door.
    fn name(self) -> &'static str;

    /// The value of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == name)
    }
}

/// The enums of the mathematics have names already.
macro_rules! of_core {
    ($($type:ty),*) => {$(
        impl Named for $type {
            const ALL: &'static [Self] = &<$type>::ALL;

            fn name(self) -> &'static str {
                <$type>::name(self)
            }
        }

        impl Scalar for $type {
            const COLUMN: Column = Column::Text;

            fn to_value(&self) -> Value {
                <$type>::name(*self).into()
            }

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Text(name) => <Self as Named>::named(name),
                    _ => None,
                }
            }
        }
    )*};
}

of_core!(Accuracy, Quantity, Ending);

/// Makes an enum with names.
///
/// ```
/// use esscher_lab::{Named, named};
/// named! {
///     /// A side.
///     pub enum Side {
///         /// The left.
///         Left = "left",
///         /// The right.
///         Right = "right",
///     }
/// }
/// assert_eq!((Side::Left.name(), Side::named("right"), Side::ALL.len()), ("left", Some(Side::Right), 2));
/// ```
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$value_meta:meta])* $value:ident = $word:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $name {
            $($(#[$value_meta])* $value,)*
        }

        impl $crate::Named for $name {
            const ALL: &'static [Self] = &[$($name::$value),*];

            fn name(self) -> &'static str {
                match self {
                    $($name::$value => $word,)*
                }
            }
        }

        impl $crate::Scalar for $name {
            const COLUMN: $crate::Column = $crate::Column::Text;

            fn to_value(&self) -> $crate::Value {
                $crate::Named::name(*self).into()
            }

            fn from_value(value: &$crate::Value) -> Option<Self> {
                match value {
                    $crate::Value::Text(name) => $crate::Named::named(name),
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str($crate::Named::name(*self))
            }
        }
    };
}
