//! What Python sees: files list their functions and classes with `export!`, and short properties with `getters!`.

use crate::arrays::Any;
use pyo3::prelude::*;

/// Adds the exports of one file to the module.
pub(crate) struct Exports(pub(crate) fn(&Bound<'_, PyModule>) -> PyResult<()>);

inventory::collect!(Exports);

/// Gives functions and classes of this file to Python.
macro_rules! export {
    (class $($class:ident),+) => {
        inventory::submit! {
            crate::export::Exports(|module| {
                $(module.add_class::<$class>()?;)+
                Ok(())
            })
        }
    };
    (fn $($function:ident),+) => {
        inventory::submit! {
            crate::export::Exports(|module| {
                $(module.add_function(pyo3::wrap_pyfunction!($function, module)?)?;)+
                Ok(())
            })
        }
    };
}

/// Properties of a class, a line each: `name: type = value;`, where the value may end early with `?`.
macro_rules! getters {
    ($class:ty, $own:ident: $($(#[$documentation:meta])* $name:ident: $type:ty = $value:expr;)+) => {
        #[pymethods]
        impl $class {
            $(
                $(#[$documentation])*
                #[getter]
                fn $name(&self) -> PyResult<$type> {
                    let $own = self;
                    Ok($value)
                }
            )+
        }
    };
}

/// Equality of classes that can be pickled: two are equal that would be made again from the same, and these print alike.
macro_rules! compared {
    ($($class:ty),+) => {
        $(
            #[pymethods]
            impl $class {
                fn __eq__(slf: &Bound<'_, Self>, other: &Any<'_>) -> PyResult<bool> {
                    slf.py().import("esscher._equality")?.call_method1("made_alike", (slf, other))?.extract()
                }

                fn __hash__(slf: &Bound<'_, Self>) -> PyResult<isize> {
                    slf.repr()?.hash()
                }
            }
        )+
    };
}

/// A dictionary of `name: value` pairs; `; item => name, …` adds fields that keep their name.
macro_rules! dictionary {
    ($py:expr $(, $name:ident: $value:expr)* $(; $item:expr => $($field:ident),+)? $(,)?) => {{
        let dictionary = pyo3::types::PyDict::new($py);
        $(dictionary.set_item(stringify!($name), $value)?;)*
        $(let item = $item; $(dictionary.set_item(stringify!($field), &item.$field)?;)+)?
        dictionary
    }};
}

/// Adds everything to the module. Its `__all__` is what users hold in their hands: classes that say they are of `esscher`.
pub(crate) fn all(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for exports in inventory::iter::<Exports> {
        exports.0(module)?;
    }
    let is_public = |value: &Any<'_>| {
        value
            .getattr("__module__")
            .and_then(|module| module.extract::<String>())
            .is_ok_and(|of| of == "esscher")
    };
    let public: Vec<_> =
        module.dict().iter().filter(|(_, value)| is_public(value)).map(|(name, _)| name).collect();
    module.setattr("__all__", public)?;
    module.setattr("VERSION", env!("CARGO_PKG_VERSION"))
}
