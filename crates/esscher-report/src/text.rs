//! A document as plain text for terminals: headings, wrapped prose, aligned tables.

use crate::document::{Block, Cell, DataTable, Document, Verdict};
use crate::figure::{Figure, Mark};
use crate::formula;
use crate::frame::{frame, left_out_note};
use crate::heat_map::{HeatMap, name};
use crate::latex::is_text;
use crate::literal;
use crate::numbers::{integer, number};
use crate::palette::LEVELS;
use crate::prose::plain;
use crate::shading::{Shade, Sign, shading};
use crate::subscript::unicode;

/// Prose is wrapped at this many characters.
const LINE: usize = 96;
/// Values of the provenance stand beside names of up to this many characters.
const LONGEST_KEY: usize = 40;

/// A document as plain text: for terminals and logs. Figures become a line for each series, heat maps
/// a block of shaded characters.
pub fn text(document: &Document) -> String {
    let mut out = String::new();
    heading(&mut out, &plain(&document.title), '=');
    paragraph(&mut out, &plain(&document.summary), "");
    for section in &document.sections {
        let verdict = section.verdict.map_or_else(String::new, |verdict| format!("  [{}]", verdict.words()));
        heading(&mut out, &(plain(&section.title) + &verdict), '-');
        for block in &section.blocks {
            match block {
                Block::Prose(prose) => paragraph(&mut out, &plain(prose), ""),
                Block::Formula(source) => paragraph(&mut out, &formula::unicode(source), "    "),
                Block::Facts(facts) => {
                    for (name, value) in facts {
                        wrap(&mut out, &format!("{}: {}", plain(name), plain(value)), "  ", "    ");
                    }
                    out.push('\n');
                }
                Block::Table(data) => table(&mut out, data),
                Block::Figure(drawing) => figure(&mut out, drawing),
                Block::HeatMap(map) => heat_map(&mut out, map),
            }
        }
    }
    if !document.provenance.is_empty() {
        heading(&mut out, "Provenance", '-');
        let names: Vec<String> = document.provenance.iter().map(|(name, _)| visible(name)).collect();
        // A value begins beside its name, or below it if that is long.
        let widths = names.iter().map(|name| length(name));
        let width = widths.filter(|width| *width <= LONGEST_KEY).max().unwrap_or(0);
        let indent = " ".repeat(width + 2);
        for (name, (_, value)) in names.iter().zip(&document.provenance) {
            match width.checked_sub(length(name)) {
                Some(gap) => wrap(&mut out, value, &format!("{name}{}  ", " ".repeat(gap)), &indent),
                None => {
                    wrap(&mut out, name, "", "");
                    wrap(&mut out, value, &indent, &indent);
                }
            }
        }
    }
    out
}

fn heading(out: &mut String, words: &str, rule: char) {
    if words.trim().is_empty() {
        return;
    }
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
    let words = visible(words);
    match length(&words) <= LINE {
        true => out.push_str(&format!("{words}\n")),
        false => wrap(out, &words, "", ""),
    }
    out.push_str(&format!("{}\n\n", rule.to_string().repeat(length(&words).min(LINE))));
}

fn paragraph(out: &mut String, words: &str, indent: &str) {
    if !words.trim().is_empty() {
        wrap(out, words, indent, indent);
        out.push('\n');
    }
}

fn wrap(out: &mut String, words: &str, first: &str, others: &str) {
    let mut line = first.to_string();
    let mut empty = true;
    let words = visible(words);
    for word in words.split(' ').flat_map(|word| pieces(word, LINE - length(others))) {
        if !empty && length(&line) + 1 + length(word) > LINE {
            out.push_str(&line);
            out.push('\n');
            line = others.to_string();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}

/// A word in pieces that a line can hold.
fn pieces(word: &str, room: usize) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(room).map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn table(out: &mut String, data: &DataTable) {
    paragraph(out, &plain(&data.caption), "");
    let width = data.rows.iter().map(Vec::len).chain([data.columns.len()]).max().unwrap_or(0);
    let headings: Vec<String> = (0..width)
        .map(|column| {
            data.columns.get(column).map_or_else(String::new, |words| cut(visible(&plain(words)), LINE))
        })
        .collect();
    let rows: Vec<Vec<String>> =
        data.rows.iter().map(|row| (0..width).map(|column| cell(row.get(column))).collect()).collect();
    let widths: Vec<usize> = (0..width)
        .map(|column| rows.iter().chain([&headings]).map(|row| length(&row[column])).max().unwrap_or(0))
        .collect();
    let mut line = |row: &[String]| {
        let fields: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, field)| {
                let gap = " ".repeat(widths[column] - length(field));
                if is_text(data, column) { format!("{field}{gap}") } else { format!("{gap}{field}") }
            })
            .collect();
        out.push_str(format!("  {}", fields.join("  ")).trim_end());
        out.push('\n');
    };
    line(&headings);
    line(&widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>());
    for row in &rows {
        line(row);
    }
    out.push('\n');
}

fn cell(cell: Option<&Cell>) -> String {
    match cell {
        Some(Cell::Text(words)) => cut(visible(&plain(words)), LINE),
        Some(Cell::Integer(value)) => integer(*value).unicode(),
        Some(Cell::Number { value, error }) => number(*value, *error).unicode(),
        Some(Cell::Missing) | None => "–".to_string(),
    }
}

fn figure(out: &mut String, figure: &Figure) {
    let title = plain(&figure.title);
    wrap(out, &format!("Figure {}: {title}", figure.id), "", "  ");
    if !figure.y.label.trim().is_empty() {
        wrap(out, &format!("{} over {}", unicode(&figure.y.label), unicode(&figure.x.label)), "  ", "  ");
    }
    for series in &figure.series {
        let sign = match series.mark {
            Mark::Line => "──",
            Mark::Dashed => "╌╌",
            Mark::Dots => " •",
        };
        let count = series.points.len();
        let range = match (series.points.first(), series.points.last()) {
            (Some(first), Some(last)) if count > 1 => {
                let at = |x, y| format!("({}, {})", number(x, None).unicode(), number(y, None).unicode());
                format!("{count} points, {} … {}", at(first.x, first.y), at(last.x, last.y))
            }
            (Some(only), _) => {
                format!("({}, {})", number(only.x, None).unicode(), number(only.y, None).unicode())
            }
            _ => "no points".to_string(),
        };
        let name = unicode(series.name.trim());
        let colon = if name.is_empty() { "" } else { ": " };
        wrap(out, &format!("{name}{colon}{range}"), &format!("  {sign} "), "     ");
    }
    if let Some(note) = left_out_note(frame(figure).left_out) {
        wrap(out, &note, "  ", "  ");
    }
    out.push('\n');
}

/// Colours as bars of eight heights.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Names of rows are cut at this many characters.
const LONGEST_NAME: usize = 16;

fn heat_map(out: &mut String, map: &HeatMap) {
    let shading = shading(map);
    wrap(out, &format!("Heat map {}: {}", map.id, plain(&map.title)), "", "  ");
    let labels = [&map.colour_label, &map.y, &map.x].map(|label| unicode(label));
    if labels.iter().any(|label| !label.trim().is_empty()) {
        wrap(
            out,
            &format!("{} over {} (downwards) and {} (across)", labels[0], labels[1], labels[2]),
            "  ",
            "  ",
        );
    }
    let names: Vec<String> = (0..shading.shades.len())
        .map(|row| cut(visible(&unicode(name(&map.rows, row))), LONGEST_NAME))
        .collect();
    let width = names.iter().map(|name| length(name)).max().unwrap_or(0);
    for (name, shades) in names.iter().zip(&shading.shades) {
        let gap = " ".repeat(width - length(name));
        // A narrow map is easier to read with air between the columns.
        let air = if 2 * shades.len() + width + 4 <= LINE { " " } else { "" };
        let bars: Vec<String> = shades.iter().map(|shade| bar(*shade).to_string()).collect();
        out.push_str(&format!("  {gap}{name}  {}\n", bars.join(air)));
    }
    if let (Some(first), Some(last)) = (map.columns.first(), map.columns.last()) {
        let between = format!("columns from {} to {}", unicode(first), unicode(last));
        wrap(out, &between, "  ", "  ");
    }
    let end = |value| number(value, None).unicode();
    let mut key = format!("{} {} … {} {}", BARS[0], end(shading.range.low), BARS[7], end(shading.range.high));
    for entry in &shading.keys {
        let sign = match entry.sign {
            Sign::Dot(_) => "",
            Sign::Hatched => "/ ",
            Sign::Crossed => "× ",
        };
        key.push_str(&format!("; {sign}{}", entry.words));
    }
    wrap(out, &key, "  ", "  ");
    out.push('\n');
}

fn bar(shade: Shade) -> char {
    match shade {
        Shade::Level(_, level) => BARS[(level * BARS.len() / LEVELS).min(BARS.len() - 1)],
        Shade::OffScale(_) => '×',
        Shade::Missing => '/',
    }
}

/// One line, without characters that would steer a terminal.
fn visible(words: &str) -> String {
    literal::visible(words).replace(['\t', '\n', '\r'], " ")
}

/// At most so many characters, with an ellipsis where it was cut.
fn cut(words: String, most: usize) -> String {
    match words.char_indices().nth(most) {
        Some(_) => words.chars().take(most - 1).chain(['…']).collect(),
        None => words,
    }
}

fn length(words: &str) -> usize {
    // Accents that stand over the letter before them take no room.
    words.chars().filter(|character| !('\u{300}'..='\u{36f}').contains(character)).count()
}

impl Verdict {
    /// The verdict in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::NotMeasurable => "not measurable",
        }
    }
}
