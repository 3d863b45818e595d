//! The arguments of a call by name: a Python function hands on what it was given, and mistakes are refused by that name.

use crate::arrays::{self, Any, Reals};
use crate::failure::{OrRaise, choice};
use crate::numbers;
use crate::runs::settings;
use crate::watch::{Watch, left_behind, watched};
use esscher_core::Mat;
use esscher_core::numerics::InstructionSet;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::ContextLength;
use esscher_questions::Settings;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::RangeInclusive;

/// The dictionary of arguments; one that is not there counts as None.
#[derive(FromPyObject)]
#[pyo3(transparent)]
pub(crate) struct Asked<'py>(Bound<'py, PyDict>);

#[cfg(feature = "audit")]
impl<'py> From<Bound<'py, PyDict>> for Asked<'py> {
    fn from(arguments: Bound<'py, PyDict>) -> Self {
        Asked(arguments)
    }
}

impl<'py> Asked<'py> {
    pub(crate) fn get(&self, what: &str) -> PyResult<Any<'py>> {
        Ok(self.given(what)?.unwrap_or_else(|| self.0.py().None().into_bound(self.0.py())))
    }

    /// An argument that may be None.
    pub(crate) fn given(&self, what: &str) -> PyResult<Option<Any<'py>>> {
        Ok(self.0.get_item(what)?.filter(|value| !value.is_none()))
    }

    /// An argument that may be None, read by `read`.
    pub(crate) fn maybe<T>(
        &self,
        what: &'static str,
        read: impl FnOnce(&Self, &'static str) -> PyResult<T>,
    ) -> PyResult<Option<T>> {
        self.given(what)?.map(|_| read(self, what)).transpose()
    }

    pub(crate) fn real(&self, what: &'static str) -> PyResult<f64> {
        numbers::real(what, &self.get(what)?)
    }

    pub(crate) fn whole(&self, what: &str, range: RangeInclusive<u64>) -> PyResult<u64> {
        numbers::whole(what, &self.get(what)?, range)
    }

    pub(crate) fn count(&self, what: &str, least: u32) -> PyResult<u32> {
        numbers::count(what, &self.get(what)?, least)
    }

    pub(crate) fn seed(&self) -> PyResult<u64> {
        numbers::seed(&self.get("seed")?)
    }

    pub(crate) fn flag(&self, what: &str) -> PyResult<bool> {
        numbers::truth(what, &self.get(what)?)
    }

    pub(crate) fn text(&self, what: &str) -> PyResult<String> {
        numbers::text(what, &self.get(what)?)
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&self, what: &str, words: &[(&str, T)]) -> PyResult<T> {
        choice(what, &self.text(what)?, words)
    }

    pub(crate) fn reals(&self, what: &'static str) -> PyResult<Reals<'py>> {
        Reals::read(what, &self.get(what)?)
    }

    pub(crate) fn vector(&self, what: &'static str) -> PyResult<Vec<f64>> {
        arrays::owned_vector(what, &self.get(what)?)
    }

    pub(crate) fn matrix(&self, what: &'static str) -> PyResult<Mat<f64>> {
        arrays::owned_matrix(what, &self.get(what)?)
    }

    /// A prompt length.
    pub(crate) fn length(&self, what: &str) -> PyResult<PromptLength> {
        arrays::length(&self.get(what)?)
    }

    pub(crate) fn lengths(&self) -> PyResult<Vec<PromptLength>> {
        arrays::lengths(&self.get("lengths")?)
    }

    /// `prompt_length`, or the infinite prompt: None and infinity.
    pub(crate) fn context_length(&self) -> PyResult<ContextLength> {
        let Some(value) = self.given("prompt_length")? else { return Ok(ContextLength::Infinite) };
        let read = value.extract::<f64>();
        if matches!(read, Ok(f64::INFINITY)) {
            return Ok(ContextLength::Infinite);
        }
        Ok(ContextLength::Finite(arrays::length_read(&value, read)?))
    }

    /// `instruction_set`: the best of this machine, or the one of a name.
    pub(crate) fn instruction_set(&self) -> PyResult<InstructionSet> {
        let name = self.maybe("instruction_set", |asked, what| asked.text(what))?;
        name.map_or_else(|| Ok(InstructionSet::best()), |name| InstructionSet::named(&name).or_raise())
    }

    /// `seed` and `instruction_set` of a request that can be written down: TOML has integers of 63 bits.
    pub(crate) fn settings(&self) -> PyResult<Settings> {
        let seed = self.maybe("seed", |asked, what| asked.whole(what, 0..=i64::MAX as u64))?;
        settings(seed, self.maybe("instruction_set", Self::text)?.as_deref())
    }

    /// Does long work that owns what it needs; see [`left_behind`].
    pub(crate) fn left_behind<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Watch) -> T + Send + 'static,
    ) -> PyResult<T> {
        left_behind(self.0.py(), self.given("progress")?.as_ref(), work)
    }

    /// Does long work, reporting to `progress`; see [`watched`].
    pub(crate) fn watched<T: Send>(&self, work: impl FnOnce(&Watch) -> T + Send) -> PyResult<T> {
        watched(self.0.py(), self.given("progress")?.as_ref(), work)
    }
}
