//! The strict reader: mistakes told with place and suggestion, and no text that makes it panic or forget.

use esscher_lab::specification::{self, Bounds, Mistake, Section};
use proptest::prelude::*;

#[derive(Debug, PartialEq)]
struct Everything {
    name: String,
    size: u64,
    scale: f64,
    list: Vec<f64>,
    words: Vec<u8>,
    matrix: Vec<Vec<f64>>,
    parts: Vec<f64>,
    truth: bool,
}

fn everything(file: &mut Section) -> Result<Everything, Mistake> {
    Ok(Everything {
        name: file.text("name", Some("no \"name\" \\"))?,
        size: file.integer("size", 1..=1_000_000_000_000, Some(7))?,
        scale: file.table("inner", |inner| inner.real("scale", Bounds::Positive, Some(0.1)))?,
        list: file.reals("list", Bounds::Any, 0..=100, Some(&[1.0, -2.5]))?,
        words: file.choices("words", &[("one", 1), ("two", 2)], Some(&["two"]))?,
        matrix: match file.form("matrix") {
            Some(_) => file.matrix("matrix", 100)?,
            None => Vec::new(),
        },
        parts: match file.form("part") {
            Some(_) => file.tables("part", 1..=10, |part| part.real("weight", Bounds::NotNegative, None))?,
            None => Vec::new(),
        },
        truth: file.truth("truth", Some(false))?,
    })
}

fn mistake(text: &str) -> Mistake {
    specification::read("it.toml", text, everything).unwrap_err()
}

#[test]
fn mistakes_name_file_line_key_expectation_and_finding() {
    for (text, place, message, hint) in [
        ("sise = 3", (1, 1), "there is no key `sise`", Some("did you mean `size`?")),
        (
            "\n\nsize = 0",
            (3, 8),
            "key `size`: expected a whole number from 1 to 1000000000000, found 0",
            None,
        ),
        (
            "size = 2.5",
            (1, 8),
            "key `size`: expected a whole number from 1 to 1000000000000, found 2.5",
            None,
        ),
        (
            "size = \"3\"",
            (1, 8),
            "key `size`: expected a whole number from 1 to 1000000000000, found the text \"3\"",
            None,
        ),
        ("[inner]\nscale = -1", (2, 9), "key `inner.scale`: expected a number above 0, found -1", None),
        ("[inner]\nscale = nan", (2, 9), "key `inner.scale`: expected a number above 0, found nan", None),
        (
            "words = [\"tow\"]",
            (1, 10),
            "key `words`: expected one of \"one\", \"two\", found \"tow\"",
            Some("did you mean \"two\"?"),
        ),
        (
            "matrix = [[1, 2], [3]]",
            (1, 19),
            "key `matrix`: expected rows of equal length, found 1 after 2",
            None,
        ),
        (
            "[[part]]\nweigth = 1",
            (2, 1),
            "key `part[1].weight` is missing",
            Some("did you mean `weight` where you wrote `weigth`?"),
        ),
        ("inner = 3", (1, 9), "key `inner`: expected a table, found 3", None),
        ("truth = 1", (1, 9), "key `truth`: expected true or false, found 1", None),
        (
            "size = 1979-05-27",
            (1, 8),
            "key `size`: expected a whole number from 1 to 1000000000000, found a date",
            None,
        ),
    ] {
        let found = mistake(text);
        let at = found.place.as_ref().map(|place| (place.line, place.column));
        assert_eq!((at, found.message().as_str()), (Some(place), message), "{text}");
        assert_eq!(found.hint.as_deref(), hint, "{text}");
    }
    assert_eq!(mistake("=").line(), 1);
    assert_eq!(mistake("size = 3\nsize = 4").line(), 2, "a key given twice");
}

#[test]
fn a_misspelt_table_is_told_at_its_name() {
    let read = |text: &str| {
        specification::read("it.toml", text, |file| {
            let _ = file.form("law");
            file.table("tokens", |tokens| tokens.real("scale", Bounds::Positive, None))
        })
        .unwrap_err()
    };
    for (text, near, said) in
        [("a = 1\n[token]\nscale = 1", 2, "token"), ("a = 1\n\n[[laws]]\nscale = 1", 3, "laws")]
    {
        let found = read(text);
        assert_eq!(found.line(), near, "{found}");
        assert!(found.hint.as_deref().is_some_and(|hint| hint.contains(said)), "{found:?}");
    }
}

#[test]
fn normalised_text_holds_every_default_and_reads_back_the_same() {
    let (first, text) = specification::read("it.toml", "", everything).unwrap();
    let expected = "name = \"no \\\"name\\\" \\\\\"\nsize = 7\nlist = [1.0, -2.5]\nwords = [\"two\"]\ntruth = false\n\n[inner]\nscale = 0.1\n";
    assert_eq!(text, expected);
    assert_eq!(specification::read("it.toml", &text, everything).unwrap(), (first, text));
}

#[test]
fn whole_numbers_may_be_written_as_powers_of_ten() {
    let (found, text) = specification::read("it.toml", "size = 1e12", everything).unwrap();
    assert_eq!(found.size, 1_000_000_000_000);
    assert!(text.contains("size = 1000000000000\n"));
    assert!(specification::read("it.toml", "size = 1.0000000000000002e0", everything).is_err());
}

#[test]
fn deep_nesting_is_refused_without_exhausting_the_stack() {
    for text in ["[".repeat(100_000), format!("a = {}", "[".repeat(100_000)), "a.".repeat(100_000)] {
        assert!(specification::read("it.toml", &text, everything).is_err());
    }
}

/// Texts near the border of sense: pieces of valid files in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "name",
        "size",
        "list",
        "words",
        "matrix",
        "part",
        "truth",
        "inner",
        "scale",
        "weight",
        "=",
        ".",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        ",",
        "\n",
        "\"",
        "'",
        "#",
        " ",
        "1",
        "-1",
        "1e12",
        "1e400",
        "nan",
        "inf",
        "-0.0",
        "0x10",
        "true",
        "false",
        "\"two\"",
        "1979-05-27",
        "\\u0000",
        "é",
        "[1, 2]",
        "[[1, 2], [3, 4]]",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics_and_what_is_read_reads_back_the_same(text in prop_oneof![pieces(), any::<String>()]) {
        if let Ok((found, normalised)) = specification::read("it.toml", &text, everything) {
            let (again, stable) = specification::read("it.toml", &normalised, everything).unwrap();
            prop_assert_eq!(&again, &found);
            prop_assert_eq!(stable, normalised);
        }
    }

    #[test]
    fn any_values_survive_the_round_trip(
        name in "[^\\p{Cc}]{0,20}", size in 1_u64..=1_000_000_000_000, scale in 1e-300_f64..1e300,
        list in prop::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 0..6),
    ) {
        let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
        let text = format!("name = \"{quoted}\"\nsize = {size}\nlist = {list:?}\n[inner]\nscale = {scale:e}");
        let (found, _) = specification::read("it.toml", &text, everything).unwrap();
        prop_assert_eq!(&found.name, &name);
        prop_assert_eq!((found.size, found.scale), (size, scale));
        prop_assert_eq!(&found.list, &list);
    }
}

#[test]
fn a_key_that_stands_twice_is_refused_in_json_as_in_toml() {
    use esscher_lab::specification::Written;
    for text in
        [r#"{"size": 1, "size": 2}"#, r#"{"inner": {"scale": 1, "scale": 1}}"#, r#"[{"a": null, "a": 1}]"#]
    {
        let refused = Written::from_json_text(text).unwrap_err();
        assert!(refused.contains("stands twice"), "{refused}");
    }
    let read = |text: &str| format!("{:?}", Written::from_json_text(text).unwrap());
    assert_eq!(read(r#"{"a": [1, 2.5, true, "x", {"b": -3}], "c": null}"#), {
        let value = serde_json::json!({"a": [1, 2.5, true, "x", {"b": -3}], "c": null});
        format!("{:?}", Written::from_json(&value).unwrap())
    });
}

#[test]
fn a_number_that_a_double_would_change_is_refused_from_toml_and_json() {
    use esscher_lab::specification::Written;
    let large = "expected at most 2^53, or a number with an exponent (1e20), which is rounded";
    for (number, said) in [
        ("1e-400", "1e-400 is too small for a double, which would hold 0 instead"),
        ("9007199254740993", &format!("is a whole number that a double cannot hold exactly: {large}")),
        ("-36893488147419103233", "cannot hold exactly"),
        ("123456789012345678901234567890123456789012345", "cannot hold exactly"),
    ] {
        let toml = mistake(&format!("list = [1, {number}]"));
        let json =
            Written::from_json_text(&format!(r#"{{"name": "1 \\\" 2", "list": [1e0, {number}]}}"#)).unwrap();
        let json = specification::read_written(json, everything).unwrap_err();
        assert!(toml.message().contains(said) && json.message().contains(said), "{toml}; {json}");
        assert_eq!(toml.message(), json.message());
    }
    assert!(mistake("list = [1e400]").message().contains("1e400 is too large for a double"));
    let refused = |text: &str| Written::from_json_text(text).unwrap_err();
    assert!(refused("[1e400]").contains("1e400 is too large for a double"));
    assert!(refused("[1, null]").contains("null is no entry of a list"));
    // Beyond 128 bits, a power of two.
    let large = "list = [1361129467683753853853498429727072845824]";
    assert_eq!(specification::read("it.toml", large, everything).unwrap().0.list, [2_f64.powi(130)]);
    assert!(mistake("list = [0x20000000000001]").message().contains("cannot hold exactly"));
    // What a double holds is read as it is, and fractions are rounded as everywhere.
    let text = "list = [9007199254740992, 9007199254740993e0, 100000000000000000000, -0e-400, 1e-320, 0.1]";
    let (found, _) = specification::read("it.toml", text, everything).unwrap();
    assert_eq!(found.list, [9_007_199_254_740_992.0, 9_007_199_254_740_992.0, 1e20, 0.0, 1e-320, 0.1]);
}

#[test]
fn a_name_of_which_nothing_can_be_seen_is_refused() {
    let named = |name: &str| {
        specification::read("it.toml", &format!("name = \"{name}\""), |file| file.name("name", None, 5))
    };
    for (name, found) in [
        ("", "0"),
        (" ", "only white space"),
        ("\u{2003}\u{2028}\u{2029}", "only white space"),
        ("longer", "6"),
    ] {
        let said = named(name).unwrap_err().message();
        assert_eq!(said, format!("key `name`: expected a name of 1 to 5 characters, found {found}"));
    }
    assert_eq!(named(" a b ").unwrap().0, " a b ");
}
