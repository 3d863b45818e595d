//! Titles and names that users choose mean themselves in every output: none of their signs is markup.

use esscher_core::Unwatched;
use esscher_lab::Provenance;
use esscher_questions::{Asked, Settings, Sources, questions, run_document};
use esscher_report::{Block, Document, csv, html, latex, svg, text};

/// Short enough to stand on one line everywhere. Its last letter is nowhere else in a report: where it stands, the whole name must.
const NAME: &str = "$a_1$`b`**ŧ**";
const IN_LATEX: &str = r"\$a\_1\$\textasciigrave{}b\textasciigrave{}{*}{*}ŧ{*}{*}";

/// How often the name stands there; each time as it was written.
fn count(output: &str, name: &str) -> usize {
    let mentions = output.matches('ŧ').count();
    assert_eq!(mentions, output.matches(name).count(), "{name} is markup somewhere in:\n{output}");
    mentions
}

fn example(question: &str) -> &'static str {
    questions().iter().find(|known| known.name == question).unwrap().example
}

/// The document of a question's example with words replaced, and the name as its title.
fn document(question: &str, replaced: &[(&str, &str)]) -> Document {
    let mut text = example(question).replacen('\n', &format!("\ntitle = '{NAME}'\n"), 1);
    for (word, by) in replaced {
        assert!(text.contains(word), "{question} has no {word}");
        text = text.replace(word, by);
    }
    let asked = Asked::read("test.toml", &text, Settings::default()).unwrap();
    let planned = asked.plan(&Sources::of_user(|_| {})).unwrap();
    let result = planned.answer(&Unwatched).unwrap().unwrap();
    let provenance = Provenance {
        specification_sha256: String::new(),
        instruction_set: String::new(),
        units: 1,
        sessions: Vec::new(),
        result_sha256: None,
    };
    run_document(&planned, &result, &provenance).unwrap()
}

/// That the name means itself in all outputs of a document, and in which files it stands: CSV, LaTeX and SVG.
fn check(document: &Document) -> [bool; 3] {
    let page = html(document);
    let (body, _) = page.split_once("<script type=\"application/json\">").unwrap();
    assert!(body.contains(&format!("<title>{NAME}</title>")) && count(body, NAME) > 2);
    assert!(text(document).starts_with(NAME) && count(&text(document), NAME) > 1);
    let mut found = [false; 3];
    for block in document.sections.iter().flat_map(|section| &section.blocks) {
        let [csv, latex, svg] = match (block, block.drawing()) {
            (_, Some(drawing)) => [csv::drawing(drawing), latex::drawing(drawing), svg(drawing)],
            (Block::Table(table), _) => [csv::table(table), latex::table(table), String::new()],
            _ => continue,
        };
        // The comment above a table is plain text.
        let (comment, tabular) = latex.split_once("\\begin").unwrap();
        count(comment, NAME);
        found[0] |= count(&csv, NAME) > 0;
        found[1] |= count(tabular, IN_LATEX) > 0;
        found[2] |= count(&svg, NAME) > 0;
    }
    found
}

#[test]
fn titles_and_names_of_laws_mean_themselves() {
    for question in ["concentration", "linearity", "path"] {
        assert_eq!(check(&document(question, &[("normal tokens", NAME)])), [true; 3], "{question}");
    }
}

#[test]
fn names_of_assignments_and_texts_mean_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    std::fs::write(&path, "In the beginning was the word, and many others came after it. ".repeat(200))
        .unwrap();
    let path = format!("'{}'", path.display());
    let model = document("audit-model", &[("first layer", NAME), ("\"bible\"", &path)]);
    assert_eq!(check(&model), [true; 3]);
    let heads = document("audit-heads", &[("\"bible\"", &path)]);
    assert_eq!(check(&heads), [false; 3], "only sections name the text");
}

#[test]
fn what_steers_a_terminal_is_the_same_in_messages_and_in_reports() {
    for character in (0..=0x10_ffff).filter_map(char::from_u32) {
        let in_reports = esscher_report::plain(&format!("x{character}y"));
        // Reports keep tabs and lines; in their prose noncharacters stand for marks.
        let is_kept = matches!(character, '\t' | '\n' | '\r') || u32::from(character) & 0xfffe == 0xfffe;
        if is_kept || ('\u{fdd0}'..='\u{fdef}').contains(&character) {
            continue;
        }
        let is_shown = in_reports.contains("\\u{");
        assert_eq!(is_shown, esscher_core::steers(character), "{character:?}: {in_reports}");
    }
}
