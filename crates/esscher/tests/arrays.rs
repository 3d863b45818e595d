//! Arrays that users bring along: what is read, what is refused, and why.

mod common;

use common::{doubles, npy, refuse, succeed};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use zip::write::{SimpleFileOptions, ZipWriter};

/// The mean of the tokens in a file, which attention at the query 0 is.
fn mean(folder: &Path, file: &str) -> Vec<f64> {
    for query in ["0", "0,0"] {
        let asked = ["attend", "--tokens", file, "--query", query, "--json"];
        let output = common::run(folder, &asked);
        if output.status.success() {
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            let rows = found["rows"].as_array().unwrap().iter();
            let outputs = rows.filter(|row| row["quantity"] == "output");
            return outputs.map(|row| row["value"].as_f64().unwrap()).collect();
        }
    }
    panic!("{file}: {}", common::texts(&common::run(folder, &["attend", "--tokens", file, "--query", "0"])).1)
}

fn refused(folder: &Path, file: &str, said: &str) {
    let told = refuse(folder, &["attend", "--tokens", file, "--query", "0,0"], 2);
    assert!(told.contains(said), "{file}: expected {said}: {told}");
}

#[test]
fn a_table_as_text_holds_what_it_says_or_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    for (text, expected) in [
        (b"\xef\xbb\xbf1,2\n3,4\n".as_slice(), [2.0, 3.0]),
        (b"1,2\r3,4\r", [2.0, 3.0]),
        (b"1,2\r\n\r\n3,4\r\n", [2.0, 3.0]),
        (b"\"1\",\"2\"\n\"3\", \"4\" \n", [2.0, 3.0]),
        (b"\"a, \"\"b\"\"\nc\",d\n1,2\n3,4", [2.0, 3.0]),
        (b"\"x\" \"y\"\n1 2\n3 4", [2.0, 3.0]),
        (b"# 5,6\nx;y\n1;2\n# 7\n3;4\n", [2.0, 3.0]),
        (b",x\n1,2 # first\n3,4\n", [2.0, 3.0]),
        (b"# columns \"a\n1,2\n # \"b\n3,4\n", [2.0, 3.0]),
    ] {
        fs::write(folder.join("good.csv"), text).unwrap();
        assert_eq!(mean(folder, "good.csv"), expected, "{}", String::from_utf8_lossy(text));
    }
    for (text, said) in [
        (b"\"1,5\"\n\"2,5\"\n\"3,5\"\n".as_slice(), "line 1: `1,5` is not a number"),
        (b"\"1,000\"\n\"900\"\n", "line 1: `1,000` is not a number"),
        (b"x\n\"1,000\"\n", "line 2: `1,000` is not a number"),
        (b"1,5;2,5\n", "line 1: `1,5` is not a number"),
        (b"1,\"2\"3\n", "line 1: `\"2\"3` is not a number"),
        (b"1,2,\n3,4,\n", "line 1: an entry is empty"),
        (b"1,2\n3,1e-400\n", "line 2: 1e-400 is too small for a double"),
        (b"\t1\t2\n3\t4\t\n", "line 1: an entry is empty"),
        (b"1\t2\n3\t4\t\n", "line 2: an entry is empty"),
        (b"1,2\n\"3,4\n5,6\n", "line 2: a quote is not closed"),
        (b"1,2\n3,\0\n", "line 2: it holds a zero byte"),
        (b"\xff\xfe1\0,\x002\0\n\0", "UTF-16"),
        (b"1,2\n3,\xff\n", "line 2: it is not UTF-8"),
        (b"1_000,2\n", "line 1: `1_000` is not a number"),
        ("\u{2212}4,\u{2212}5\n5,1\n".as_bytes(), "line 1: `\u{2212}4` is not a number"),
        (b"$1,$2\n5,1\n", "line 1: `$1` is not a number"),
        (
            b"9007199254740993,0\n",
            "line 1: 9007199254740993 is a whole number that a double cannot hold exactly",
        ),
    ] {
        fs::write(folder.join("bad.csv"), text).unwrap();
        refused(folder, "bad.csv", said);
    }
    fs::write(folder.join("long.csv"), vec![b'1'; 17 << 20]).unwrap();
    refused(folder, "long.csv", "line 1 has more than");
}

#[test]
fn every_number_type_of_numpy_is_read_exactly_or_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let write = |descr: &str, shape: &str, data: &[u8]| {
        fs::write(folder.join("some.npy"), npy(descr, false, shape, data)).unwrap();
    };
    for (descr, shape, data, expected) in [
        ("|b1", "(2, 1)", [0, 1].as_slice(), 0.5),
        ("|i1", "(2, 1)", &[0xff, 0xfe], -1.5),
        ("|u1", "(2,)", &[0xff, 0xfe], 254.5),
        ("<u2", "(2,)", &[0, 1, 2, 1], 257.0),
        (">u2", "(2,)", &[1, 0, 1, 2], 257.0),
        ("<i2", "(1,)", &[0xfe, 0xff], -2.0),
        (">u4", "(1,)", &[0xff, 0, 0, 0], 4_278_190_080.0),
        ("<u8", "()", &[1, 0, 0, 0, 0, 0, 0, 0], 1.0),
        ("<i8", "(1,)", &[0, 0, 0, 0, 0, 0, 0, 0x40], 4_611_686_018_427_387_904.0),
        ("<f2", "(1, 1)", &[0x00, 0x3e], 1.5),
        (">f4", "(1, 1)", &[0x3f, 0xc0, 0, 0], 1.5),
        (">f8", "(1, 1)", &[0x3f, 0xf8, 0, 0, 0, 0, 0, 0], 1.5),
    ] {
        write(descr, shape, data);
        assert_eq!(mean(folder, "some.npy"), [expected], "{descr}");
    }
    let large = 9_007_199_254_740_993_u64.to_le_bytes();
    for (descr, shape, data, said) in [
        ("<M8[D]", "(1, 2)", [0; 16].as_slice(), "`<M8[D]` (dates or times)"),
        ("<m8[s]", "(1, 2)", &[0; 16], "`<m8[s]` (dates or times)"),
        ("|O", "(2, 2)", &[0; 8], "`|O` (Python objects)"),
        ("<c16", "(1, 1)", &[0; 16], "`<c16` (complex numbers)"),
        ("<f16", "(1, 1)", &[0; 16], "`<f16`"),
        ("<U3", "(1, 1)", &[0; 12], "`<U3`"),
        ("|b1", "(1, 2)", &[0, 2], "entry [0, 1] is the byte 2"),
        ("<i8", "(1, 1)", &large, "entry [0, 0] is 9007199254740993, which a double cannot hold"),
        ("<f8", "(0, 2)", &[], "has no entries"),
        ("<f8", "(4, 2)", &[0; 63], "it is truncated"),
        ("<f8", "(4, 2)", &[0; 65], "there are more"),
        ("<f8", "(536870913,)", &[], "is too large"),
    ] {
        write(descr, shape, data);
        refused(folder, "some.npy", said);
    }
    let record = npy("<f8", false, "(1,)", &[0; 16]);
    let record = String::from_utf8_lossy(&record[10..record.len() - 16])
        .replace("'<f8'", "[('x', '<f8'), ('y', '<f8')]")
        .into_bytes();
    let with = |version: u8, length: &[u8], header: &[u8], data: &[u8]| {
        [b"\x93NUMPY", [version, 0].as_slice(), length, header, data].concat()
    };
    let bytes = with(1, &(record.len() as u16).to_le_bytes(), &record, &[0; 16]);
    fs::write(folder.join("records.npy"), bytes).unwrap();
    refused(folder, "records.npy", "its entries are records");
    let plain = npy("<f8", true, "(2, 2)", &[]);
    let data = doubles(&[1.0, 2.0, 3.0, 5.0]);
    for version in [2, 3] {
        let length = (plain.len() as u32 - 10).to_le_bytes();
        fs::write(folder.join("later.npy"), with(version, &length, &plain[10..], &data)).unwrap();
        assert_eq!(mean(folder, "later.npy"), [1.5, 4.0], "version {version}, in Fortran order");
    }
    let whole = npy("<f8", false, "(1, 2)", &doubles(&[1.0, 2.0]));
    for (end, said) in
        [(0, "it is empty"), (3, "it is truncated"), (9, "it is truncated"), (60, "it is truncated")]
    {
        fs::write(folder.join("cut.npy"), &whole[..end]).unwrap();
        refused(folder, "cut.npy", said);
    }
    fs::write(folder.join("text.npy"), "1,2\n").unwrap();
    refused(folder, "text.npy", "it is no NumPy array");
    fs::write(folder.join("text.npz"), "1,2\n").unwrap();
    refused(folder, "text.npz", "it is no NumPy archive");
}

/// An archive with one array, deflated.
fn archive(path: &Path, header: &[u8], zeros: usize) {
    let mut writer = ZipWriter::new(fs::File::create(path).unwrap());
    writer.start_file("a.npy", SimpleFileOptions::default()).unwrap();
    writer.write_all(header).unwrap();
    let piece = vec![0; 1 << 20];
    for begun in (0..zeros).step_by(piece.len()) {
        writer.write_all(&piece[..piece.len().min(zeros - begun)]).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn capital_letters_name_files_too_and_archives_that_explode_are_refused_before() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::write(folder.join("A.NPY"), npy("<f8", false, "(1, 2)", &doubles(&[1.0, 2.0]))).unwrap();
    fs::write(folder.join("A.Csv"), "1,2\n").unwrap();
    archive(&folder.join("A.NPZ"), &npy("<f8", false, "(1000, 2)", &[]), 16_000);
    for (file, expected) in
        [("A.NPY", [1.0, 2.0]), ("A.Csv", [1.0, 2.0]), ("A.NPZ", [0.0, 0.0]), ("A.NPZ:a", [0.0, 0.0])]
    {
        assert_eq!(mean(folder, file), expected, "{file}");
    }
    succeed(folder, &["attend", "--tokens", "gaussian:2", "--query", "A.NPY"]);
    let bytes = 100 << 20;
    archive(&folder.join("bomb.npz"), &npy("<f8", false, &format!("({}, 2)", bytes / 16), &[]), bytes);
    refused(folder, "bomb.npz", "more than 16 times its");
}

#[cfg(unix)]
#[test]
fn a_device_is_no_array() {
    let place = tempfile::tempdir().unwrap();
    let began = Instant::now();
    for name in ["z.csv", "z.npy", "z.npz"] {
        std::os::unix::fs::symlink("/dev/zero", place.path().join(name)).unwrap();
        refused(place.path(), name, name);
    }
    refused(place.path(), "z.npz:a", "z.npz");
    assert!(began.elapsed() < Duration::from_secs(10), "nothing of it was read");
}

#[test]
fn an_entry_that_was_left_out_is_no_number() {
    let place = tempfile::tempdir().unwrap();
    for query in ["0.5,,-1", ",0.5,-1", "0.5,-1,", "0.5,-1;", ","] {
        let told = refuse(place.path(), &["attend", "--tokens", "gaussian:2", "--query", query], 2);
        assert!(told.contains("an entry is empty, expected a number"), "{query}: {told}");
    }
}

#[test]
fn a_number_is_what_was_typed_wherever_it_is_typed_or_it_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let attend = |option: &str, number: &str| {
        let tokens = if option == "--tokens" { number } else { "gaussian:1" };
        let mut asked = vec!["attend", "--tokens", tokens];
        if option != "--query" {
            asked.extend(["--query", "1"]);
        }
        if option != "--tokens" {
            asked.extend([option, number]);
        }
        asked.into_iter().map(str::to_string).collect::<Vec<_>>()
    };
    let tell =
        |asked: &[String]| refuse(place.path(), &asked.iter().map(String::as_str).collect::<Vec<_>>(), 2);
    for option in ["--query", "--score", "--value", "--tokens"] {
        for (number, said) in [
            ("1e-400", "1e-400 is too small for a double"),
            ("1e400", "1e400 is too large for a double"),
            ("9007199254740993", "9007199254740993 is a whole number that a double cannot hold exactly"),
        ] {
            for number in [number.to_string(), format!("[[{number}]]")] {
                let told = tell(&attend(option, &number));
                assert!(told.contains(said), "{option} {number}: {told}");
            }
        }
    }
    for law in ["gaussian:1:1e-400", "{family='gaussian',dimension=1,scale=1e-400}"] {
        assert!(tell(&attend("--tokens", law)).contains("1e-400 is too small for a double"), "{law}");
    }
}

#[test]
fn tokens_and_per_cents_are_taken_as_they_are_typed() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("same.csv"), "1,2\n3,4\n").unwrap();
    let attend = |tokens: &str, query: &str, score: &str| {
        succeed(place.path(), &["attend", "--tokens", tokens, "--query", query, "--score", score])
    };
    let expected = attend("same.csv", "0.1,-0.2", "0.5");
    for tokens in ["[[1,2],[3,4]]", "1,2;3,4"] {
        assert_eq!(attend(tokens, "10%,-20%", "50%"), expected, "{tokens}");
    }
}

#[test]
fn the_tolerance_of_an_output_knows_what_cancelled() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::write(folder.join("far.csv"), "1000000000000000,1\n1000000000000001,2\n1000000000000002,3\n")
        .unwrap();
    fs::write(
        folder.join("near.csv"),
        "100000000.1,100000000.3\n100000000.2,99999999.3\n99999998.9,100000000.9\n",
    )
    .unwrap();
    let law = r#"{family="gaussian",dimension=2,mean=[123456789.1,-123456789.3]}"#;
    // The truth is that of the doubles that were written, with forty digits.
    for (tokens, query, value, coordinate, truth) in [
        ("far.csv", "0.1,0", "1", 1, 2.066_555_795_755_198),
        ("near.csv", "0.5,-0.3", "1,-1", 0, 0.055_725_543_790_494_6),
        (law, "0.123,0.456", "1,1", 0, 0.378_999_997_019_767_8),
        ("laplace:1", "1.414213562373", "1", 0, 10_533_143_708_647.26),
    ] {
        let printed =
            succeed(folder, &["attend", "--json", "--tokens", tokens, "--query", query, "--value", value]);
        let answer: serde_json::Value = serde_json::from_str(&printed).unwrap();
        let rows = answer["rows"].as_array().unwrap();
        let found =
            rows.iter().find(|row| row["quantity"] == "output" && row["coordinate"] == coordinate).unwrap();
        let number = |key: &str| found[key].as_f64().unwrap();
        let off = (number("value") - truth).abs();
        assert!(off <= number("error"), "{tokens}: {off:e} is more than {:e}", number("error"));
    }
}

#[test]
fn what_follows_a_law_is_no_other_key() {
    let place = tempfile::tempdir().unwrap();
    let law = "{family=\"rademacher\",dimension=1}\na={family=\"gaussian\",dimension=1,mean=[100]}";
    let told = refuse(place.path(), &["attend", "--tokens", law, "--query", "1"], 2);
    assert!(told.contains("expected one value on one line"), "{told}");
}

#[test]
fn a_simulation_that_would_take_a_year_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let told =
        refuse(place.path(), &["attend", "--tokens", "rademacher:1", "--query", "1", "--length", "1e12"], 2);
    assert!(told.contains("simulated token by token"), "{told}");
}
