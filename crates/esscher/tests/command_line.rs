//! Quick questions, errors, exit codes, completions and the manual page.

mod common;

use common::{doubles, npy, refuse, run, succeed, texts};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed(folder, arguments)).expect("one JSON value")
}

fn close(found: &Value, expected: f64) {
    let found = found.as_f64().expect("a number");
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} is not {expected}");
}

/// Softmax attention on a prompt, written out.
fn by_hand(tokens: &[[f64; 2]], query: [f64; 2]) -> [f64; 2] {
    let weights: Vec<f64> =
        tokens.iter().map(|token| (token[0] * query[0] + token[1] * query[1]).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mean =
        |index: usize| tokens.iter().zip(&weights).map(|(token, weight)| weight * token[index]).sum::<f64>();
    [mean(0) / total, mean(1) / total]
}

const TOKENS: [[f64; 2]; 4] = [[0.1, 1.0], [-0.7, 0.2], [1.5, -0.3], [0.4, 0.4]];

#[test]
fn prompts_from_every_file_format_give_the_same_output() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let flat: Vec<f64> = TOKENS.concat();
    let columns: Vec<f64> = (0..2).flat_map(|j| TOKENS.iter().map(move |token| token[j])).collect();
    let singles: Vec<u8> = flat.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect();
    fs::write(folder.join("c.npy"), npy("<f8", false, "(4, 2)", &doubles(&flat))).unwrap();
    fs::write(folder.join("fortran.npy"), npy("<f8", true, "(4, 2)", &doubles(&columns))).unwrap();
    fs::write(folder.join("single.npy"), npy("<f4", false, "(4, 2)", &singles)).unwrap();
    let rows: Vec<String> = TOKENS.iter().map(|token| format!("{},{}", token[0], token[1])).collect();
    fs::write(folder.join("plain.csv"), rows.join("\n")).unwrap();
    fs::write(folder.join("headed.csv"), format!("x,y\n{}\n", rows.join("\n"))).unwrap();
    fs::write(folder.join("spaces.txt"), format!("# x y\n{}\n", rows.join("\n").replace(',', "   ")))
        .unwrap();
    fs::write(folder.join("tabs.tsv"), rows.join("\n").replace(',', "\t")).unwrap();
    let expected = by_hand(&TOKENS, [0.5, -1.0]);
    for (file, tolerance) in [
        ("c.npy", 1e-12),
        ("fortran.npy", 1e-12),
        ("single.npy", 1e-6),
        ("plain.csv", 1e-12),
        ("headed.csv", 1e-12),
        ("tabs.tsv", 1e-12),
        ("spaces.txt", 1e-12),
    ] {
        let found = json(folder, &["attend", "--tokens", file, "--query", "0.5,-1", "--json"]);
        for (index, expected) in expected.iter().enumerate() {
            let found = number(&found, 0, "output", Some(index as u64)).as_f64().unwrap();
            assert!((found - expected).abs() < tolerance, "{file}: {found} is not {expected}");
        }
    }
    // Weights 1 / sum p^2, by hand.
    let weights: Vec<f64> = TOKENS.iter().map(|token| (0.5 * token[0] - token[1]).exp()).collect();
    let (sum, squares) = (weights.iter().sum::<f64>(), weights.iter().map(|w| w * w).sum::<f64>());
    let found = json(folder, &["attend", "--tokens", "c.npy", "--query", "0.5,-1", "--json"]);
    close(number(&found, 0, "effective-tokens", None), sum * sum / squares);
}

/// The number of a query in the rows of an answer.
fn number<'a>(answer: &'a Value, query: u64, quantity: &str, coordinate: Option<u64>) -> &'a Value {
    let rows = answer["rows"].as_array().unwrap();
    let wanted = |row: &&Value| {
        row["query"] == query && row["quantity"] == quantity && row["coordinate"].as_u64() == coordinate
    };
    &rows.iter().find(wanted).unwrap()["value"]
}

#[test]
fn arrays_written_by_numpy_are_read() {
    let place = tempfile::tempdir().unwrap();
    let script = "import numpy as np\nnp.savez('some.npz', tokens=np.array([[0.1,1.0],[-0.7,0.2],[1.5,-0.3],[0.4,0.4]]), \
                  queries=np.array([[0.5,-1.0],[0.0,0.0]], dtype='f4'))\nnp.savez_compressed('one.npz', a=np.eye(2))";
    let python =
        std::process::Command::new("python3").args(["-c", script]).current_dir(place.path()).output();
    if !python.is_ok_and(|output| output.status.success()) {
        println!("not run: NumPy is not here");
        return;
    }
    let arguments = [
        "attend",
        "--tokens",
        "some.npz:tokens",
        "--query",
        "some.npz:queries",
        "--score",
        "one.npz",
        "--json",
    ];
    let found = json(place.path(), &arguments);
    let expected = by_hand(&TOKENS, [0.5, -1.0]);
    close(number(&found, 0, "output", Some(0)), expected[0]);
    close(number(&found, 1, "output", Some(1)), (1.0 + 0.2 - 0.3 + 0.4) / 4.0);
    let told = refuse(place.path(), &["attend", "--tokens", "some.npz", "--query", "0,0"], 2);
    assert!(told.contains("holds 2 arrays") && told.contains("tokens"), "{told}");
}

#[test]
fn a_law_of_tokens_answers_at_any_length() {
    let place = tempfile::tempdir().unwrap();
    let law = r#"{family = "gaussian", dimension = 2, mean = [0, 1], covariance = [[1, 0.3], [0.3, 0.5]]}"#;
    let arguments =
        ["attend", "--tokens", law, "--query", "0.5,-0.2", "--value", "1,-1", "--length", "1e12", "--json"];
    let found = json(place.path(), &arguments);
    // V(m + GUz) = (0 + 0.5 - 0.06) - (1 + 0.15 - 0.1)
    close(number(&found, 0, "output", Some(0)), 0.44 - 1.05);
    // At 1e12 tokens the mean squared error is its first order, V G V' e^{s^2} / L plus the shift squared.
    let variance = 0.5_f64 * 0.5 * 1.0 - 2.0 * 0.5 * 0.2 * 0.3 + 0.2 * 0.2 * 0.5;
    let spread = 1.0 - 2.0 * 0.3 + 0.5;
    let tilt = (0.5 - 0.06) - (0.15 - 0.1);
    let expected = variance.exp() * (spread + tilt * tilt) / 1e12;
    let error = number(&found, 0, "root-mean-square-error", None).as_f64().unwrap().powi(2);
    assert!((error / expected - 1.0).abs() < 1e-6, "{error} against {expected}");
}

#[test]
fn the_horizon_of_a_one_dimensional_head_is_the_smallest_length() {
    let place = tempfile::tempdir().unwrap();
    let ask = |tolerance: &str| {
        let arguments = [
            "horizon",
            "--tokens",
            "gaussian:1",
            "--query",
            "0",
            "--tolerance",
            tolerance,
            "--json",
            "--quiet",
        ];
        json(place.path(), &arguments)["rows"][0]["length"].as_u64().unwrap()
    };
    // At the query 0 the output is a plain mean: the error is exactly 1 / sqrt(L).
    assert_eq!(ask("0.1"), 100);
    assert_eq!(ask("0.0999"), 101);
    assert_eq!(ask("2"), 1);
    fs::write(place.path().join("sample.csv"), "1\n-1\n1\n-1\n").unwrap();
    let arguments = ["horizon", "--tokens", "sample.csv", "--query", "0", "--tolerance", "0.1"];
    let printed = succeed(place.path(), &arguments);
    assert!(printed.contains("the Gaussian with the mean and covariance of the 4 given tokens"), "{printed}");
    assert!(
        printed.contains("100 tokens suffice: the root-mean-square error is at most 0.1 (exact)"),
        "{printed}"
    );
}

#[test]
fn rubbish_is_refused_in_one_line_with_exit_code_two() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::write(folder.join("nan.csv"), "1,2\nnan,3\n").unwrap();
    fs::write(folder.join("ragged.csv"), "1,2\n3\n").unwrap();
    fs::write(folder.join("words.csv"), "1,2\nthree,4\n").unwrap();
    fs::write(folder.join("empty.csv"), "").unwrap();
    fs::write(folder.join("text.npy"), "hello").unwrap();
    fs::write(folder.join("liar.npy"), npy("<f8", false, "(100000000, 2)", &doubles(&[1.0]))).unwrap();
    fs::write(
        folder.join("huge.npy"),
        npy("<f8", false, "(18446744073709551615, 18446744073709551615)", &[]),
    )
    .unwrap();
    fs::write(folder.join("object.npy"), npy("|O", false, "(1, 2)", &[0; 16])).unwrap();
    fs::write(folder.join("cubic.npy"), npy("<f8", false, "(1, 1, 2)", &doubles(&[1.0, 2.0]))).unwrap();
    fs::write(folder.join("short.npy"), npy("<f8", false, "(2, 2)", &doubles(&[1.0, 2.0]))).unwrap();
    fs::write(folder.join("not.npz"), "PK").unwrap();
    fs::write(folder.join("header.npy"), b"\x93NUMPY\x02\x00\xf0\xff\xff\xff").unwrap();
    fs::write(folder.join("typo.csv"), "1,2x\n3,4\n").unwrap();
    fs::write(folder.join("gaps.csv"), "1,2\n\n\nthree,4\n").unwrap();
    fs::write(folder.join("none.npy"), npy("<f8", false, "(0, 2)", &[])).unwrap();
    fs::write(folder.join("row.csv"), vec!["1"; 60_000].join(",")).unwrap();
    for (tokens, query, said) in [
        ("nan.csv", "1,1", "entry [1, 0] is NaN"),
        ("ragged.csv", "1,1", "row 2 has 1 entries, expected 2"),
        ("words.csv", "1,1", "line 2: `three` is not a number"),
        ("empty.csv", "1,1", "no numbers"),
        ("absent.csv", "1,1", "cannot read absent.csv"),
        ("text.npy", "1,1", "cannot read text.npy"),
        ("liar.npy", "1,1", "there are fewer"),
        ("huge.npy", "1,1", "too large"),
        ("object.npy", "1,1", "cannot read object.npy"),
        ("cubic.npy", "1,1", "expected one or two dimensions"),
        ("short.npy", "1,1", "cannot read short.npy"),
        ("not.npz", "1,1", "cannot read not.npz"),
        ("header.npy", "1,1", "its header would have"),
        ("typo.csv", "1,1", "line 1: `2x` is not a number"),
        ("gaps.csv", "1,1", "line 4: `three` is not a number"),
        ("none.npy", "1,1", "has no entries"),
        ("row.csv", "1,1", "dimension up to 1024, found 60000"),
        ("gaussian:2", "1", "expected vectors of dimension 2, found 1"),
        ("gaussian:2", "a,b", "`a` is not a number"),
        ("gaussian:0", "1", "key `dimension`"),
        ("gaussian:-3", "1", "key `dimension`"),
        ("gaussian:2:x", "1,1", "--tokens"),
        ("gausian:2", "1,1", "found \"gausian\""),
        ("laplace:1", "5", "infinite at this tilt"),
        ("{", "1", "--tokens"),
        ("", "1", "--tokens"),
    ] {
        let told = refuse(folder, &["attend", "--tokens", tokens, "--query", query], 2);
        assert!(told.contains(said), "{tokens} {query}: {told}");
    }
    for arguments in [
        vec!["attend", "--tokens", "gaussian:2", "--query", "1,1", "--length", "0"],
        vec!["attend", "--tokens", "gaussian:2", "--query", "1,1", "--length", "1e13"],
        vec!["attend", "--tokens", "gaussian:2", "--query", "1,1", "--score", "1,2,3"],
        vec!["horizon", "--tokens", "gaussian:2", "--tolerance", "-1"],
        vec!["horizon", "--tokens", "gaussian:2", "--tolerance", "nan"],
        vec!["horizon", "--tokens", "rademacher:2", "--tolerance", "0.1"],
        vec!["run", "absent.toml"],
        vec!["run", "."],
        vec!["reproduce", "--only", "gausian-lemma"],
        vec!["reproduce", "--instruction-set", "sse9"],
    ] {
        refuse(folder, &arguments, 2);
    }
    let told = refuse(folder, &["reproduce", "--only", "gausian-lemma"], 2);
    assert!(told.contains("did you mean `gaussian-lemma`?"), "{told}");
    // The parser's own refusals have the same code.
    for arguments in [vec!["--threads", "0", "list"], vec!["atend"], vec![]] {
        assert_eq!(run(folder, &arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_mistake_in_a_specification_is_told_with_file_line_and_key() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("mine.toml"), common::EXPERIMENT.replace("prompts = 12", "promts = 12"))
        .unwrap();
    let told = refuse(place.path(), &["run", "mine.toml"], 2);
    assert!(told.contains("mine.toml:3:1: ") && told.contains("promts"), "{told}");
    assert!(told.contains("hint: did you mean `prompts`?"), "{told}");
    assert!(!place.path().join("runs").exists(), "nothing is made for a mistake");
    let output = run(place.path(), &["run", "mine.toml", "--json"]);
    let error: Value = serde_json::from_slice(&output.stderr).expect("errors are JSON too");
    assert!(error["error"].as_str().is_some_and(|text| text.contains("mine.toml:3:1")), "{error}");
}

#[test]
fn a_specification_may_be_json_in_any_file_or_piped() {
    use std::io::Write;
    let place = tempfile::tempdir().unwrap();
    let json = r#"{"$schema": "x", "kind": "attend", "query": [1], "tokens": "gaussian:1"}"#;
    fs::write(place.path().join("q.txt"), json).unwrap();
    let expected = succeed(place.path(), &["ask", "q.txt"]);
    for text in [json, "kind = 'attend'\nquery = [1]\ntokens = 'gaussian:1'"] {
        let mut command = common::esscher(place.path(), &["ask", "-"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert_eq!(texts(&child.wait_with_output().unwrap()).0, expected);
    }
    assert!(refuse(place.path(), &["run", "q.txt"], 2).contains("looks like JSON"));
    fs::write(place.path().join("h.toml"), "kind = 'horizon'\ntokens = 'cube:2'\ntolerance = 1").unwrap();
    let told = refuse(place.path(), &["ask", "h.toml"], 2);
    assert!(told.contains("h.toml:2:1: key `tokens`: prompts of this law can only be simulated"), "{told}");
}

#[test]
fn help_completions_and_manual_come_from_one_definition() {
    let place = tempfile::tempdir().unwrap();
    let help = succeed(place.path(), &["--help"]);
    for command in ["reproduce", "run", "attend", "horizon", "shard", "merge", "report", "list"] {
        assert!(help.contains(command), "{command}");
        assert!(succeed(place.path(), &[command, "--help"]).contains("Usage: esscher"), "{command}");
        for shell in ["bash", "zsh", "fish"] {
            assert!(succeed(place.path(), &["completions", shell]).contains(command), "{shell} {command}");
        }
    }
    assert!(help.contains("130  interrupted"), "exit codes are told");
    assert!(succeed(place.path(), &["manual"]).contains("esscher\\-reproduce"));
    assert!(succeed(place.path(), &["manual", "horizon"]).contains("root\\-mean\\-square"));
    refuse(place.path(), &["manual", "nothing"], 2);
    let (printed, _) = texts(&run(place.path(), &["list", "claims"]));
    assert!(printed.contains("gaussian-lemma"), "{printed}");
}

#[test]
fn a_closed_or_full_output_is_no_panic() {
    let place = tempfile::tempdir().unwrap();
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    if !Path::new("/dev/full").exists() {
        return;
    }
    let all: [&[&str]; 7] = [
        &["list"],
        &["completions", "bash"],
        &["manual"],
        &["example", "path"],
        &["--help"],
        &["--version"],
        &["run", "--help", "--json"],
    ];
    for arguments in all {
        let output = common::esscher(place.path(), arguments).stdout(full()).output().unwrap();
        let (_, told) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        let is_json = arguments.contains(&"--json");
        let begin = if is_json { "{\"error\":\"" } else { "error: " };
        assert!(told.starts_with(&format!("{begin}cannot write to standard output")), "{told}");
        // A reader that goes away is no error.
        let mut child = common::esscher(place.path(), arguments).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    // A log that cannot be written does not stop a run.
    common::write_experiment(place.path());
    let status =
        common::esscher(place.path(), &["run", "paths.toml"]).stdout(Stdio::null()).stderr(full()).status();
    assert_eq!(status.unwrap().code(), Some(0));
}

#[cfg(feature = "audit")]
#[test]
fn an_audit_says_on_one_screen_what_was_found_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let asked = [
        "audit",
        "tiny-random",
        "--length",
        "160",
        "--texts",
        "3",
        "--tolerance",
        "0.3",
        "--candidates",
        "mean,tilted-gaussian",
    ];
    let printed = succeed(folder.path(), &[&asked[..], &["--quiet"]].concat());
    assert!(printed.lines().count() < 40, "{printed}");
    for said in [
        "2 layers of 4 query and 2 key-value heads",
        "of 8 accepted",
        "of 4 accepted",
        "exact attention",
        "report: ",
    ] {
        assert!(printed.contains(said), "{said}: {printed}");
    }
    let found = json(folder.path(), &[&asked[..], &["--json", "--quiet"]].concat());
    assert_eq!(found["outcome"], "finished");
    assert_eq!(
        found["heads"]["accepted"].as_u64().unwrap()
            + found["heads"]["uncertain"].as_u64().unwrap()
            + found["heads"]["refused"].as_u64().unwrap(),
        8
    );
    for one in found["assignments"].as_array().unwrap() {
        for (bytes, share) in
            [("cache_bytes", "cache_share"), ("cache_bytes_at_context", "cache_share_at_context")]
        {
            let exact = found["assignments"][0][bytes].as_f64().unwrap();
            assert_eq!(one[bytes].as_f64().unwrap() / exact, one[share].as_f64().unwrap(), "{one}");
        }
    }
    assert!(found["advice"].is_null() || found["advice"].as_str().unwrap().contains("random ones"));
    for file in ["report", "verdicts", "full_attention_heads"] {
        assert!(folder.path().join(found[file].as_str().unwrap()).exists(), "{file}");
    }
    let told = refuse(folder.path(), &["audit", "tiny-random", "--length", "512", "--quiet"], 2);
    let said = "error: --length: 512 tokens are more than the model's context of 256; use at most 256";
    assert_eq!(told.trim_end(), said);
    let told = refuse(folder.path(), &["audit", "tiny-random", "--test", "bible", "--quiet"], 2);
    assert!(told.contains("calibrates"), "{told}");
    let told = refuse(folder.path(), &["audit", "tiny-random", "stories15M", "--quiet"], 2);
    assert!(told.contains("tiny-random is not a dump") && told.contains("one by one"), "{told}");
    let told = refuse(folder.path(), &["audit", "tiny-random", "--tolerance", "nan", "--quiet"], 2);
    assert!(told.contains("--tolerance: expected a number from 0.000001 to 10"), "{told}");
    let told = refuse(folder.path(), &["audit", "tiny-random", "--length", "96", "--quiet"], 2);
    assert!(told.contains("at least 128") && !told.contains("window"), "{told}");
    for (options, said) in [
        (["--length", "1"], "from 64 to 1048576"),
        (
            ["--instruction-set", "portable"],
            "error: an audit always uses the best instruction set of the machine",
        ),
        (["--candidates", "x"], "error: --candidates: `x` is not a candidate: expected dropped, "),
    ] {
        let told = refuse(folder.path(), &["audit", "tiny-random", options[0], options[1], "--quiet"], 2);
        assert!(told.contains(said), "{told}");
    }
    let told = refuse(folder.path(), &["audit", "a\nb", "--quiet"], 2);
    assert!(told.contains("expected text on one line") && !told.contains("quotes"), "{told}");
    let help = succeed(folder.path(), &["audit", "--help"]);
    for said in [
        "at least 128",
        "esscher audit stories15M",
        "esscher audit smollm2 --length 1024",
        "--text mine.txt --test other.txt",
    ] {
        assert!(help.contains(said), "{said}: {help}");
    }
    let models = succeed(folder.path(), &["list", "models"]);
    assert!(models.contains("stories15M") && models.contains("MIT") && models.contains("MB"), "{models}");
}

#[cfg(feature = "audit")]
#[test]
fn a_model_that_is_made_on_the_spot_needs_no_cache_and_others_say_how_to_name_one() {
    let place = tempfile::tempdir().unwrap();
    let in_nothing = |arguments: &[&str]| {
        common::esscher(place.path(), arguments).env_clear().env("PATH", "").output().unwrap()
    };
    let asked =
        ["audit", "tiny-random", "--length", "128", "--candidates", "mean", "--heads-only", "--quiet"];
    let output = in_nothing(&asked);
    assert!(output.status.success(), "{output:?}");
    let (_, told) = texts(&in_nothing(&["audit", "stories15M"]));
    assert!(told.contains("no home folder") && told.contains("ESSCHER_CACHE"), "{told}");
    fs::write(place.path().join("file"), "").unwrap();
    let mut homeless = common::esscher(place.path(), &["audit", "stories15M"]);
    let output = homeless.env_clear().env("HOME", place.path().join("file")).output().unwrap();
    let (_, told) = texts(&output);
    assert!(told.contains("models cannot be kept in") && told.contains("ESSCHER_CACHE"), "{told}");
}

#[cfg(feature = "audit")]
#[test]
fn a_model_that_a_specification_fetches_is_told() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("mine.toml"), "kind = \"audit-heads\"\nmodel = \"stories15M\"\n").unwrap();
    let told = |arguments: &[&str]| {
        // No package client is found, and the cache is empty.
        let mut command = common::esscher(place.path(), arguments);
        let output = command.env("PATH", "").env("ESSCHER_CACHE", place.path()).output().unwrap();
        texts(&output).1
    };
    let (loud, quiet) = (told(&["run", "mine.toml"]), told(&["run", "mine.toml", "--quiet"]));
    assert!(loud.starts_with("fetching stories15M: ") && loud.contains("npm is not installed"), "{loud}");
    assert!(!quiet.contains("fetching stories15M: ") && quiet.contains("npm is not installed"), "{quiet}");
}

#[cfg(feature = "audit")]
#[test]
fn a_plan_fetches_nothing_and_says_what_a_run_would_download() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("mine.toml"), "kind = \"audit-heads\"\nmodel = \"stories15M\"\n").unwrap();
    let planned = |arguments: &[&str]| {
        let mut command = common::esscher(place.path(), arguments);
        let output = command.env("PATH", "").env("ESSCHER_CACHE", place.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        texts(&output)
    };
    let (said, told) = planned(&["run", "mine.toml", "--plan"]);
    assert!(said.contains("stories15M is not on this machine") && said.contains(" MB with npm"), "{said}");
    assert!(said.contains("known after that") && told.is_empty(), "{said} {told}");
    let (said, _) = planned(&["run", "mine.toml", "--plan", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&said["download"]["model"], &said["units"]),
        (&"stories15M".into(), &serde_json::Value::Null)
    );
}

/// What a command with `--json` printed, which must be one object in the right place; its exit code.
fn object(folder: &Path, arguments: &[&OsStr]) -> (Value, i32) {
    let output = common::esscher(folder, &["--json"]).args(arguments).output().unwrap();
    in_json(&output, &format!("{arguments:?}"))
}

fn in_json(output: &Output, asked: &str) -> (Value, i32) {
    let (printed, told) = texts(output);
    let code = output.status.code().expect("it ends by itself");
    let (object, other) = if [0, 3].contains(&code) { (&printed, &told) } else { (&told, &printed) };
    assert!(other.is_empty() && object.lines().count() == 1, "{asked} ends with {code}: {printed}{told}");
    let object: Value =
        serde_json::from_str(object).unwrap_or_else(|error| panic!("{asked}: {error}: {object}"));
    assert!(object.is_object(), "{asked}: {object}");
    (object, code)
}

#[test]
fn with_json_every_command_prints_one_object_and_every_error_has_a_kind() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let answers = "kind = \"attend\"\ntokens = \"gaussian:1\"\nquery = [1]\n";
    fs::write(folder.join("asked.toml"), answers).unwrap();
    fs::write(folder.join("wrong.toml"), "kind = \"pth\"").unwrap();
    fs::write(folder.join("dates.npy"), npy("<M8[D]", false, "(1, 1)", &[0; 8])).unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    fs::write(
        folder.join("marked.json"),
        "\u{feff}{\"kind\": \"attend\", \"tokens\": \"gaussian:1\", \"query\": [1]}",
    )
    .unwrap();
    fs::write(folder.join("list.json"), "[1]").unwrap();
    let ask = |line: &str| object(folder, &line.split(' ').map(OsStr::new).collect::<Vec<_>>());
    for (line, key) in [
        ("list", "entries"),
        ("list models", "entries"),
        ("attend --tokens gaussian:1 --query 1", "rows"),
        ("horizon --tokens gaussian:1 --tolerance 0.1", "rows"),
        ("schema", "oneOf"),
        ("schema path", "properties"),
        ("example path", "specification"),
        ("example", "examples"),
        ("run asked.toml --dry-run", "units"),
        ("horizon --tokens gaussian:1 --tolerance 10%", "rows"),
        ("completions fish", "text"),
        ("manual run", "text"),
        ("--help", "text"),
        ("audit --help", "text"),
        ("--version", "text"),
        ("ask asked.toml", "rows"),
        ("ask marked.json", "rows"),
        ("run asked.toml --plan", "units"),
        ("run asked.toml", "report"),
        ("shard asked.toml 0/2", "outcome"),
        ("shard asked.toml 1/2", "outcome"),
        ("merge runs/asked.shard-0-of-2 --out merged", "folder"),
        ("report runs/asked", "report"),
    ] {
        let (found, code) = ask(line);
        assert!(code == 0 && !found[key].is_null(), "{line}: {found}");
    }
    for (line, kind, code) in [
        ("run", "usage", 2),
        ("bogus", "usage", 2),
        ("list --bogus", "usage", 2),
        ("list bogus", "usage", 2),
        ("--threads 0 list", "usage", 2),
        ("run asked.toml --seed -1", "usage", 2),
        ("attend --tokens gaussian:1 --query 1 --seed -1", "usage", 2),
        ("attend --tokens gaussian:1 --query ;", "usage", 2),
        ("shard asked.toml 2/2", "usage", 2),
        ("attend --tokens gausian:1 --query 1", "usage", 2),
        ("attend --tokens dates.npy --query 1", "array", 2),
        ("attend --tokens absent.npy --query 1", "file", 2),
        ("attend --tokens laplace:1 --query 5", "mathematics", 2),
        ("run absent.toml", "file", 2),
        ("run wrong.toml", "specification", 2),
        ("ask wrong.toml", "specification", 2),
        ("ask list.json", "specification", 2),
        ("reproduce --only nothing", "unknown", 2),
        ("example nothing", "unknown", 2),
        ("manual nothing", "unknown", 2),
        ("schema nothing", "unknown", 2),
        ("report empty", "unfinished", 1),
        ("open empty", "unfinished", 1),
        ("open --out empty", "unfinished", 1),
        ("horizon --tokens rademacher:2 --tolerance 1%", "usage", 2),
        ("audit gpt2", "unknown", 2),
        ("audit Qwen/Qwen2-0.5B", "file", 2),
        ("merge runs/asked.shard-1-of-2 --out other", "unfinished", 1),
        ("audit absent.gguf", "file", 2),
        ("audit tiny-random --text absent.txt", "file", 2),
        ("audit dates.npy", "model", 2),
        ("run dates.npy", "specification", 2),
        ("attend --tokens gaussian:1 --query 1e200 --score 1e200", "mathematics", 2),
    ] {
        let (found, found_code) = ask(line);
        assert_eq!((found["kind"].as_str(), found_code), (Some(kind), code), "{line}: {found}");
        assert!(found["error"].is_string() && found.get("hint").is_some(), "{line}: {found}");
    }
    let (found, code) = object(folder, &[]);
    assert_eq!((&found["kind"], code), (&"usage".into(), 2), "{found}");
    // A value that was forgotten takes the options behind it along.
    let forgotten = ["attend", "--tokens", "--", "--query", "1", "--json"];
    let (found, code) = in_json(&common::esscher(folder, &forgotten).output().unwrap(), "--tokens --");
    assert_eq!((&found["kind"], code), (&"usage".into(), 2), "{found}");
    let documented = include_str!("../../../docs/command-line.md");
    for kind in <esscher_lab::ErrorKind as esscher_lab::Named>::ALL {
        assert!(documented.contains(&format!("| `{kind}` |")), "{kind} is documented");
    }
}

#[test]
fn what_was_nearly_right_is_told_what_is_right() {
    let place = tempfile::tempdir().unwrap();
    for (line, hint) in [
        ("reproduce --only gausian", "did you mean `gaussian-lemma`?"),
        (
            "attend --tokens mixture --query 1",
            "write its parts: '{family = \"mixture\", dimension = 2, component = ",
        ),
        ("attend --tokens gaussian --query 1", "write its dimension, too: gaussian:4"),
        ("attend --tokens gaussian:1", "for example `--query 0.5,-1`"),
    ] {
        let told = refuse(place.path(), &line.split(' ').collect::<Vec<_>>(), 2);
        assert!(told.contains(hint), "{told}");
    }
    let parts = "{family = \"mixture\", dimension = 2, component = [{weight = 0.5, mean = [1, 0], scale = 1}, \
                 {weight = 0.5, mean = [-1, 0], scale = 1}]}";
    let found = json(place.path(), &["attend", "--tokens", parts, "--query", "1,0", "--json"]);
    assert!(number(&found, 0, "output", Some(0)).as_f64().unwrap() > 1.0);
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_or_steer_a_terminal_are_only_shown() {
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().unwrap();
    let answers = "kind = \"attend\"\ntokens = \"gaussian:1\"\nquery = [1]\n";
    fs::write(place.path().join("asked.toml"), answers).unwrap();
    let out = OsStr::from_bytes(b"o\xff\x1b[31m\n");
    let run = [OsStr::new("run"), OsStr::new("asked.toml"), OsStr::new("--out"), out];
    let (found, code) = object(place.path(), &run);
    assert_eq!(code, 0);
    assert_eq!(found["folder"], "o\u{fffd}\u{1b}[31m\n/asked");
    let mut shown = common::esscher(place.path(), &[]);
    let (printed, told) = texts(&shown.args(run).output().unwrap());
    assert!(printed.contains("/o\u{fffd}\\u{1b}[31m\\n/asked/report.html"), "{printed}");
    assert!(!printed.contains('\u{1b}') && told.is_empty(), "{told}");
    for arguments in [["run", "no\u{1b}[31m\u{7}\n.toml"], ["audit", "no\u{1b}[31m"], ["\u{1b}[31m", "x"]] {
        let told = refuse(place.path(), &arguments, 2);
        assert!(told.contains("\\u{1b}[31m") && !told.contains('\u{1b}'), "{told}");
    }
}

#[cfg(all(unix, feature = "audit"))]
#[test]
fn a_signal_ends_the_program_at_once_while_no_units_are_computed() {
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("mine.toml"), "kind = \"audit-heads\"\nmodel = \"stories15M\"\n").unwrap();
    let client = place.path().join("npm");
    let started = place.path().join("started");
    let script = format!("#!/bin/sh\necho $$ > {}\nexec /bin/sleep 20\n", started.display());
    fs::write(&client, script).unwrap();
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
    // Under `nohup` these tests, and what they start, do not hear a hangup.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let is_deaf =
        ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_some_and(|bits| bits & 1 == 1);
    for (signal, json) in [("-TERM", false), ("-INT", true), ("-HUP", false)] {
        if signal == "-HUP" && is_deaf {
            continue;
        }
        let _ = fs::remove_file(&started);
        let mut command = common::esscher(place.path(), &["run", "mine.toml"]);
        command
            .env("PATH", place.path())
            .env("ESSCHER_CACHE", place.path().join(signal))
            .stderr(Stdio::piped());
        let mut child = if json { command.arg("--json") } else { &mut command }.spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        if !json {
            told.read_line(&mut line).unwrap();
            assert!(line.starts_with("fetching stories15M"), "{line}");
        }
        let began = Instant::now();
        let fetching = loop {
            match fs::read_to_string(&started).ok().and_then(|id| id.trim().parse::<u32>().ok()) {
                Some(id) => break id,
                None => assert!(began.elapsed() < Duration::from_secs(60), "the client is started"),
            }
        };
        let began = Instant::now();
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        assert!(began.elapsed() < Duration::from_secs(10), "{signal}: it does not wait for the client");
        line.clear();
        told.read_line(&mut line).unwrap();
        let expected = if json { "{\"error\":\"interrupted\"" } else { "interrupted" };
        assert!(line.starts_with(expected), "{line}");
        assert!(!Path::new(&format!("/proc/{fetching}")).exists(), "the client ends too");
        let is_left = |folder: &Path| {
            let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
            names.into_iter().any(|name| name.to_string_lossy().starts_with(".part-"))
        };
        let cache = place.path().join(signal).join("models");
        assert!(!is_left(&cache) && !is_left(&cache.join("stories15M")), "what it fetched goes");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_says_in_json_where_it_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let long = common::EXPERIMENT.replace("prompts = 12", "prompts = 4000");
    fs::write(place.path().join("paths.toml"), long).unwrap();
    let arguments = ["run", "paths.toml", "--json", "--threads", "1"];
    let mut command = common::esscher(place.path(), &arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let shards = place.path().join("runs/paths/shards");
    while common::files(&shards).is_empty() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let (found, code) = in_json(&child.wait_with_output().unwrap(), "an interrupted run");
    assert_eq!((code, &found["kind"], &found["folder"]), (130, &"interrupted".into(), &"runs/paths".into()));
    assert!(found["error"].as_str().unwrap().contains("the same command goes on from here"), "{found}");
}

#[test]
fn numbers_of_any_size_are_written_as_people_write_them() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("tokens.csv"), "1e308,1e-200\n1e308,1e-200\n").unwrap();
    let printed = succeed(place.path(), &["attend", "--tokens", "tokens.csv", "--query", "0,0"]);
    assert!(printed.contains("output           [10³⁰⁸, 10⁻²⁰⁰]"), "{printed}");
    let asked = ["horizon", "--tokens", "gaussian:1:1e-60", "--query", "0", "--tolerance", "1e-61"];
    let printed = succeed(place.path(), &asked);
    assert!(printed.contains("at most 1e-61 (exact)"), "{printed}");
}

#[cfg(unix)]
#[test]
fn a_run_that_shall_outlive_its_terminal_does() {
    let place = tempfile::tempdir().unwrap();
    common::write_experiment(place.path());
    let script = "trap '' HUP; exec \"$0\" run paths.toml --quiet";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_esscher")]).current_dir(place.path());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while !place.path().join("runs/paths/spec.toml").exists() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
    for _ in 0..2 {
        assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_error_that_dips_below_the_tolerance_has_its_horizon_in_the_dip() {
    let place = tempfile::tempdir().unwrap();
    // A rare point far away: the error falls, rises when prompts begin to hold it, and falls again.
    let rare = "{family=\"points\",points=[[0.5],[-0.5],[10]],weights=[0.5,0.5,0.000001]}";
    let told =
        succeed(place.path(), &["horizon", "--tokens", rare, "--query", "0.7", "--tolerance", "0.0931"]);
    assert!(told.starts_with("44 tokens suffice"), "{told}");
    let asked = ["attend", "--tokens", rare, "--query", "0.7", "--length", "43,44,64", "--json"];
    let found = json(place.path(), &asked);
    let is_error = |row: &&serde_json::Value| row["quantity"] == "root-mean-square-error";
    let rows = found["rows"].as_array().unwrap();
    let errors: Vec<f64> = rows.iter().filter(is_error).map(|row| row["value"].as_f64().unwrap()).collect();
    assert!(errors[0] > 0.0931 && errors[1] <= 0.0931 && errors[2] > 0.0931, "{errors:?}");
}

#[test]
fn a_standard_error_without_a_variance_behind_it_says_so() {
    let place = tempfile::tempdir().unwrap();
    let told =
        succeed(place.path(), &["attend", "--tokens", "laplace:1:1", "--query", "0.5", "--length", "100"]);
    assert!(told.contains("squared errors have no finite variance, so that ± is too small"), "{told}");
    let told =
        succeed(place.path(), &["attend", "--tokens", "laplace:1:1", "--query", "0.3", "--length", "100"]);
    assert!(!told.contains("variance"), "{told}");
}

#[test]
fn what_people_try_first_leads_to_what_is_right() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    for (line, said) in [
        ("explore", "`esscher open`"),
        ("serve", "needs no server"),
        ("plot", "figures are made by `esscher run"),
        ("repro", "did you mean `reproduce`?"),
        ("horizn", "did you mean `horizon`?"),
        (
            "horizon --tokens rademacher:3 --tolerance 0.01",
            "--tokens: prompts of this law can only be simulated",
        ),
        ("horizon --tokens rademacher:3 --tolerance 0.01", "hint: ask `attend`"),
        (
            "horizon --tokens gaussian:1 --query 1 --tolerance inf",
            "--tolerance: expected a finite number, found inf",
        ),
        ("horizon --tokens gaussian:1 --query 1 --tolerance 1e400", "1e400 is too large for a double"),
        ("attend --tokens p.parquet --query 1", "name ends in .npy, .npz, .csv, .tsv or .txt"),
        ("attend --tokens - --query -", "standard input is given to --tokens and --query"),
        ("list --threads 0", "expected a whole number from 1 to 1024"),
        ("list --threads 99999999999999999999", "expected a whole number from 1 to 1024"),
        ("list --format json", "the usage is esscher list"),
        #[cfg(feature = "audit")]
        ("audit gpt2", "smollm2"),
        #[cfg(feature = "audit")]
        ("audit gpt2", "record the heads in Python with `esscher.recording`"),
        #[cfg(feature = "audit")]
        ("audit smolm2", "did you mean `smollm2`?"),
        #[cfg(feature = "audit")]
        ("audit Qwen/Qwen2-0.5B", "hf download Qwen/Qwen2-0.5B"),
    ] {
        let told = refuse(folder, &line.split(' ').collect::<Vec<_>>(), 2);
        assert!(told.contains(said), "{line}: {told}");
    }
    let (_, told) = texts(&run(folder, &[]));
    let tried = told.trim_end().lines().rev().take_while(|line| !line.starts_with("Try:")).count();
    assert_eq!(tried, 3, "{told}");
    let names = succeed(folder, &["example"]);
    assert!(names.contains("concentration") && names.contains("gaussian-lemma"), "{names}");
    for command in ["attend", "horizon", "run", "reproduce", "report", "list", "example"] {
        let help = succeed(folder, &[command, "--help"]);
        assert!(help.contains(&format!("  esscher {command}")), "{help}");
    }
}

#[test]
fn examples_are_commented_and_run() {
    let place = tempfile::tempdir().unwrap();
    let example = succeed(place.path(), &["example", "attend"]);
    assert!(example.contains("# One query, or a list of queries\nquery = [0.5, -1.0]\n"), "{example}");
    assert!(example.contains("# Other keys for the top of this file, which may be left out: "), "{example}");
    fs::write(place.path().join("mine.toml"), example).unwrap();
    let told = succeed(place.path(), &["ask", "mine.toml"]);
    assert!(told.contains("100 tokens: root-mean-square error"), "{told}");
}

#[test]
fn numbers_are_taken_and_given_as_people_write_them() {
    use std::io::Write;
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let horizon = |tolerance: &str| {
        succeed(folder, &["horizon", "--tokens", "gaussian:1", "--query", "0", "--tolerance", tolerance])
    };
    assert_eq!(horizon("1%"), horizon("0.01"));
    // The error is exactly 1 / sqrt(L), but for the last bit of the tolerance's square.
    assert!(horizon("1%").starts_with("10,00"), "{}", horizon("1%"));
    assert!(horizon("0.1 %").contains(" tokens (1 million) suffice: "), "{}", horizon("0.1 %"));
    refuse(folder, &["horizon", "--tokens", "gaussian:1", "--query", "0", "--tolerance", "%"], 2);
    refuse(folder, &["horizon", "--tokens", "gaussian:1", "--tolerance", "0.1", "--directions", "50%"], 2);
    let attend = |tokens: &str, query: &str, more: &[&str]| {
        succeed(folder, &[&["attend", "--tokens", tokens, "--query", query], more].concat())
    };
    assert_eq!(attend("gaussian:2", "[0.5, -1]", &[]), attend("gaussian:2", "0.5,-1", &[]));
    let score = |score| attend("gaussian:2", "0.5,-1", &["--score", score]);
    assert_eq!(score("[[1, 0.5], [0, 1]]"), score("1,0.5;0,1"));
    assert!(attend("gaussian:2", "1,1", &[]).contains("(linear in the query; identical)"));
    for wrong in ["[0.5,-1", "[[1,0],0]", "[1]2]", "[]"] {
        refuse(folder, &["attend", "--tokens", "gaussian:2", "--query", wrong], 2);
    }
    let mut command = common::esscher(folder, &["attend", "--tokens", "-", "--query", "0.5,-1"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"x,y\n0.1,1\n-0.7,0.2\n1.5,-0.3\n").unwrap();
    let (piped, _) = texts(&child.wait_with_output().unwrap());
    fs::write(folder.join("same.csv"), "0.1,1\n-0.7,0.2\n1.5,-0.3\n").unwrap();
    assert_eq!(piped, attend("same.csv", "0.5,-1", &[]));
    let told: Vec<&str> = piped.lines().filter(|line| line.starts_with("effective tokens")).collect();
    assert!(told.len() == 1 && told[0].contains(" of 3   ("), "{piped}");
}

#[test]
fn a_run_ends_in_a_few_lines_and_all_of_its_report_is_there_for_the_asking() {
    let place = tempfile::tempdir().unwrap();
    let lines = |arguments: &[&str]| succeed(place.path(), arguments).lines().count();
    common::write_experiment(place.path());
    let told = succeed(place.path(), &["run", "paths.toml", "--quiet"]);
    assert!(told.lines().count() <= 16, "{told}");
    let last = told.lines().last().unwrap();
    let report = last.strip_prefix("report: ").expect("the path is the last line");
    assert!(Path::new(report).is_absolute() && Path::new(report).is_file(), "{last}");
    assert!(!told.contains('\u{1b}'), "a pipe is no terminal");
    assert!(lines(&["run", "paths.toml", "--quiet", "--verbose"]) > 30);
    let reproduced = succeed(place.path(), &["reproduce", "--only", "gaussian-lemma"]);
    assert!(reproduced.starts_with("holds  gaussian-lemma  "), "{reproduced}");
    assert!(reproduced.contains("\n1 claim holds (") && !reproduced.contains("fail"), "{reproduced}");
    let told = refuse(place.path(), &["report", "runs/reproduce"], 1);
    assert!(told.contains("is the folder of a reproduction"), "{told}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_is_opened_by_the_program_that_opens_files_or_it_is_said_why_not() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let answers = "kind = \"attend\"\ntokens = \"gaussian:1\"\nquery = [1]\n";
    for name in ["one", "two"] {
        fs::write(folder.join(format!("{name}.toml")), answers).unwrap();
    }
    let with = |path: &Path, line: &str| {
        let mut command = common::esscher(folder, &line.split(' ').collect::<Vec<_>>());
        command.env("PATH", path).output().unwrap()
    };
    let nothing = folder.join("nothing");
    let output = with(&nothing, "run one.toml --open");
    let (printed, told) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(printed.contains("report: ") && told.contains("there is no xdg-open here"), "{printed}{told}");
    let (found, code) = in_json(&with(&nothing, "run one.toml --open --json"), "--open");
    assert_eq!((code, &found["opened"]), (0, &false.into()));
    assert_eq!(with(&nothing, "open one").status.code(), Some(1));
    let opener = folder.join("xdg-open");
    fs::write(&opener, format!("#!/bin/sh\necho \"$1\" >> {}/opened\n", folder.display())).unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    for line in ["run two.toml --open", "open one", "open runs/one", "report runs/one --open", "open"] {
        let output = with(folder, line);
        assert!(output.status.success(), "{line}: {output:?}");
    }
    let opened = fs::read_to_string(folder.join("opened")).unwrap();
    let opened: Vec<bool> = opened.lines().map(|line| line.ends_with("/runs/one/report.html")).collect();
    assert_eq!(opened, [false, true, true, true, true], "the newest was made last");
}
