//! Words that people try as commands, and the command that is right.

use crate::arguments::definition;
use esscher_lab::specification::nearest;

/// What was looked for, and what there is for it.
const TRIED: &[(&[&str], &str)] = &[
    (
        &["explore", "view", "show", "browse", "display"],
        "`esscher open RUN` shows the report of a run, `esscher open` the newest one",
    ),
    (
        &["serve", "server", "web", "ui", "dashboard", "watch"],
        "a report is one HTML file that needs no server: `esscher open` shows the newest",
    ),
    (
        &["plot", "figure", "figures", "draw", "graph"],
        "figures are made by `esscher run FILE.toml`, as SVG, PNG, PDF and CSV in the run folder; `esscher open` shows its report",
    ),
    (&["compare", "diff"], "`esscher report RUN RUN` compares runs"),
    (
        &["train", "simulate", "experiment", "new", "init", "start", "examples"],
        "`esscher example` names the experiments; `esscher example training > mine.toml` and `esscher run mine.toml` run one",
    ),
    (&["resume", "continue", "restart"], "the command that was interrupted goes on where it was"),
    (
        &["verify", "check", "test", "paper", "replicate", "prove"],
        "`esscher reproduce` measures every claim of the paper; `esscher run FILE.toml --plan` checks a specification",
    ),
    (
        &["download", "fetch", "pull", "model"],
        "`esscher audit MODEL` fetches what it needs; `esscher list models` names them",
    ),
    (&["claims", "claim"], "`esscher list claims`; `esscher reproduce --only CLAIM` measures one"),
    (&["models"], "`esscher list models`"),
    (&["mechanisms", "mechanism", "zoo"], "`esscher list mechanisms`"),
    (&["questions", "question", "kinds"], "`esscher list questions`"),
    (&["measures", "measure", "laws", "law"], "`esscher list measures`"),
    (&["man"], "`esscher manual` prints a manual page"),
    (&["version"], "`esscher --version`"),
];

/// What to try instead of a command that there is not.
pub(crate) fn instead_of(word: &str) -> String {
    let tried = word.to_lowercase();
    if let Some((_, instead)) = TRIED.iter().find(|(words, _)| words.contains(&tried.as_str())) {
        return (*instead).to_string();
    }
    let definition = definition();
    let names: Vec<&str> = definition.get_subcommands().map(clap::Command::get_name).collect();
    // `repro` is nearer to `reproduce` than its letters say.
    let begun =
        names.iter().copied().find(|name| tried.chars().count() >= 3 && name.starts_with(tried.as_str()));
    match begun.or_else(|| nearest(&tried, &names)) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "`esscher --help` explains all commands".to_string(),
    }
}

/// What to do about an option that is missing.
pub(crate) fn example_of(option: &str) -> String {
    let example = match option {
        "--tokens" => "--tokens gaussian:2",
        "--query" => "--query 0.5,-1",
        "--tolerance" => "--tolerance 0.01",
        _ => return "`--help` behind the command shows examples".to_string(),
    };
    format!("for example `{example}`; `--help` behind the command shows more")
}

/// What to write instead of an argument that stands where there is none.
pub(crate) fn instead_of_argument(word: &str) -> Option<String> {
    if word.parse::<f64>().is_ok() {
        return Some("numbers of one list are separated by commas: --query 0.5,-1".to_string());
    }
    let claims = esscher_claims::claims();
    let names: Vec<&str> = claims.iter().map(|claim| claim.name).collect();
    nearest(word, &names).map(|name| format!("`esscher reproduce --only {name}` measures that claim"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_to_commands_that_there_are() {
        let definition = definition();
        let known: Vec<&str> = definition.get_subcommands().map(clap::Command::get_name).collect();
        for (words, instead) in TRIED {
            for named in instead.split("`esscher ").skip(1) {
                let name = named.split(|sign: char| !sign.is_alphanumeric()).next().unwrap_or_default();
                assert!(name.is_empty() || known.contains(&name), "{name}");
            }
            assert!(words.iter().all(|word| !known.contains(word)), "{words:?} are no commands");
        }
        for (word, said) in [
            ("horizn", "did you mean `horizon`?"),
            ("repro", "did you mean `reproduce`?"),
            ("Plot", "figures are made by"),
            ("xyzzy", "`esscher --help` explains all commands"),
        ] {
            assert!(instead_of(word).starts_with(said), "{word}: {}", instead_of(word));
        }
    }
}
