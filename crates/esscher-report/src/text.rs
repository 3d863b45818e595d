//! A document as plain text for terminals: headings, wrapped prose, aligned tables.

use crate::braille;
use crate::document::{Block, Card, Cell, DataTable, Document, Verdict};
use crate::figure::{Figure, Mark};
use crate::formula;
use crate::frame::{frame, left_out_note};
use crate::heat_map::{HeatMap, name};
use crate::latex::is_text;
use crate::literal;
use crate::numbers::{integer, number};
use crate::palette::LEVELS;
use crate::panels::Panels;
use crate::prose::{plain, with_addresses};
use crate::shading::{Shade, Sign, shading};
use crate::subscript::unicode;
use crate::tiles::{Tiles, Tone};

/// Lines of a brief for its leads, and below its title for its plot.
const BRIEF_LINES: usize = 3;

/// The outcome of a document in about ten lines: its title, what it found first, and its first figure as a small plot.
pub fn brief(document: &Document) -> String {
    let mut out = String::new();
    heading_line(&mut out, &plain(&document.title));
    let blocks = || document.sections.iter().flat_map(|section| &section.blocks);
    let leads: Vec<String> = blocks()
        .filter_map(|block| match block {
            Block::Lead(prose) => Some(plain(prose)),
            _ => None,
        })
        .collect();
    let mut told = String::new();
    for words in if leads.is_empty() { vec![plain(&document.summary)] } else { leads } {
        // The last line may end with two signs more.
        wrap_at(LINE - 2, &mut told, words.trim(), "", "");
    }
    let lines: Vec<&str> = told.lines().filter(|line| !line.trim().is_empty()).collect();
    for (index, line) in lines.iter().take(BRIEF_LINES).enumerate() {
        let goes_on = index + 1 == BRIEF_LINES && lines.len() > BRIEF_LINES;
        out.push_str(line);
        out.push_str(if goes_on { " …\n" } else { "\n" });
    }
    if let Some((title, plot)) = document.sections.iter().find_map(|section| first_plot(&section.blocks)) {
        out.push('\n');
        heading_line(&mut out, &title);
        for line in plot {
            out.push_str(&format!("{line}\n"));
        }
    }
    out
}

/// One line, cut if it is too long.
fn heading_line(out: &mut String, words: &str) {
    if !words.trim().is_empty() {
        out.push_str(&format!("{}\n", cut(visible(words.trim()), LINE)));
    }
}

/// The title and the plot of the first figure that can be drawn.
fn first_plot(blocks: &[Block]) -> Option<(String, Vec<String>)> {
    blocks.iter().find_map(|block| match block {
        Block::Figure(figure) => Some((plain(&figure.title), braille::plot(figure)?)),
        Block::Panels(panels) => {
            let panel = panels.panels.first()?;
            let title = format!("{} ({})", plain(&panels.title), unicode(&panel.title));
            Some((title, braille::plot(&panels.alone(panel))?))
        }
        Block::Folded { blocks, .. } => first_plot(blocks),
        _ => None,
    })
}

/// Prose is wrapped at this many characters.
const LINE: usize = 96;
/// Values of the provenance stand beside names of up to this many characters.
const LONGEST_KEY: usize = 40;

/// A document as plain text: for terminals and logs. Figures become a line for each series, heat maps
/// a block of shaded characters, tiles a block of signs.
pub fn text(document: &Document) -> String {
    let mut out = String::new();
    heading(&mut out, &plain(&document.title), '=');
    paragraph(&mut out, &plain(&document.summary), "");
    for section in &document.sections {
        let verdict = section.verdict.map_or_else(String::new, |verdict| format!("  [{}]", verdict.words()));
        heading(&mut out, &(plain(&section.title) + &verdict), '-');
        for one in &section.blocks {
            block(&mut out, one);
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

fn block(out: &mut String, one: &Block) {
    match one {
        Block::Lead(prose) | Block::Prose(prose) => paragraph(out, &with_addresses(prose), ""),
        Block::Formula(source) => paragraph(out, &formula::unicode(source), "    "),
        Block::Facts(facts) => {
            for (name, value) in facts {
                wrap(out, &format!("{}: {}", plain(name), with_addresses(value)), "  ", "    ");
            }
            out.push('\n');
        }
        Block::Table(data) => table(out, data),
        Block::Figure(drawing) => figure(out, drawing),
        Block::Panels(all) => panels(out, all),
        Block::HeatMap(map) => heat_map(out, map),
        Block::Tiles(all) => tiles(out, all),
        Block::Cards(all) => cards(out, all),
        Block::Folded { title, blocks, .. } => {
            paragraph(out, &with_addresses(title), "");
            for one in blocks {
                block(out, one);
            }
        }
    }
}

/// A line for each card: whether it holds, what it is about, its number.
fn cards(out: &mut String, cards: &[Card]) {
    for card in cards {
        let sign = match card.verdict {
            Some(Verdict::Holds) => "✓ ",
            Some(Verdict::Fails) => "✗ ",
            Some(Verdict::NotMeasurable) => "? ",
            None => "• ",
        };
        let number = [&card.number, &card.meaning].map(|words| plain(words)).join(" ");
        let colon = if number.trim().is_empty() { "" } else { ": " };
        wrap(out, &format!("{}{colon}{}", plain(&card.title), number.trim()), &format!("  {sign}"), "    ");
    }
    out.push('\n');
}

fn panels(out: &mut String, panels: &Panels) {
    wrap(out, &format!("Figure {}: {}", panels.id, plain(&panels.title)), "", "  ");
    axes(out, &panels.y.label, &panels.x.label);
    for panel in &panels.panels {
        if !panel.title.trim().is_empty() {
            wrap(out, &unicode(&panel.title), "  ", "  ");
        }
        all_series(out, &panels.alone(panel));
    }
    if let Some(note) = left_out_note(frame(&panels.overlaid()).left_out) {
        wrap(out, &note, "  ", "  ");
    }
    out.push('\n');
}

/// Signs of kinds: the first of each tone has its own, others have letters.
fn signs(tiles: &Tiles) -> Vec<char> {
    let mut letters = 'a'..='z';
    let mut seen: Vec<Tone> = Vec::new();
    let mut sign = |tone: Tone| {
        if seen.contains(&tone) {
            return letters.next().unwrap_or('?');
        }
        seen.push(tone);
        match tone {
            Tone::Good => '█',
            Tone::Bad => '▒',
            Tone::Open => '·',
        }
    };
    tiles.kinds.iter().map(|kind| sign(kind.tone)).collect()
}

fn tiles(out: &mut String, tiles: &Tiles) {
    wrap(out, &format!("Tiles {}: {}", tiles.id, plain(&tiles.title)), "", "  ");
    let (rows, columns) = tiles.size();
    if !tiles.x.trim().is_empty() || !tiles.y.trim().is_empty() {
        wrap(out, &format!("{} downwards, {} across", unicode(&tiles.y), unicode(&tiles.x)), "  ", "  ");
    }
    let signs = signs(tiles);
    let names: Vec<String> =
        (0..rows).map(|row| cut(visible(&unicode(name(&tiles.rows, row))), LONGEST_NAME)).collect();
    let width = names.iter().map(|name| length(name)).max().unwrap_or(0);
    let air = if 2 * columns + width + 4 <= LINE { " " } else { "" };
    for (row, name) in names.iter().enumerate() {
        let gap = " ".repeat(width - length(name));
        let line: Vec<String> = (0..columns)
            .map(|column| {
                let tile = tiles.tile(row, column);
                tile.map_or(' ', |tile| signs.get(tile.kind).copied().unwrap_or('?')).to_string()
            })
            .collect();
        out.push_str(cut(format!("  {gap}{name}  {}", line.join(air)), LINE).trim_end());
        out.push('\n');
    }
    let key: Vec<String> = tiles
        .counted()
        .iter()
        .zip(&signs)
        .map(|((kind, count), sign)| format!("{sign} {}: {count}", unicode(&kind.name)))
        .collect();
    wrap(out, &key.join("; "), "  ", "  ");
    out.push('\n');
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
    wrap_at(LINE, out, words, first, others);
}

fn wrap_at(width: usize, out: &mut String, words: &str, first: &str, others: &str) {
    let mut line = first.to_string();
    let mut empty = true;
    let words = visible(words);
    for word in words.split(' ').flat_map(|word| pieces(word, width - length(others))) {
        if !empty && length(&line) + 1 + length(word) > width {
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

/// A table as wide as a terminal: long texts are broken, and columns that do not fit beside the others follow below them,
/// again after the first.
fn table(out: &mut String, data: &DataTable) {
    paragraph(out, &with_addresses(&data.caption), "");
    let width = data.rows.iter().map(Vec::len).chain([data.columns.len()]).max().unwrap_or(0);
    let heading =
        |column: usize| data.columns.get(column).map_or_else(String::new, |words| visible(&plain(words)));
    let headings: Vec<String> = (0..width).map(heading).collect();
    let rows: Vec<Vec<String>> =
        data.rows.iter().map(|row| (0..width).map(|column| cell(row.get(column))).collect()).collect();
    let mut widths: Vec<usize> = (0..width)
        .map(|column| {
            let texts = rows.iter().map(|row| length(&row[column]));
            let longest = texts.max().unwrap_or(0);
            // A heading may be broken; no word of it is.
            let head = &headings[column];
            let least = head.split(' ').map(length).max().unwrap_or(0).max(length(head).div_ceil(3));
            longest.max(least).min(LINE - 4)
        })
        .collect();
    let total = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
    while total(&widths) > LINE {
        let broken = (0..width).filter(|column| is_text(data, *column) && widths[*column] > NARROWEST);
        let Some(widest) = broken.max_by_key(|column| widths[*column]) else { break };
        widths[widest] -= 1;
    }
    let mut next = 0;
    while next < width || (next == 0 && width == 0) {
        let mut columns: Vec<usize> = if next > 0 { vec![0] } else { Vec::new() };
        let mut room = LINE.saturating_sub(columns.iter().map(|column| widths[*column] + 2).sum());
        let begin = next;
        while next < width && (next == begin || widths[next] + 2 <= room) {
            room = room.saturating_sub(widths[next] + 2);
            columns.push(next);
            next += 1;
        }
        if begin > 0 && length_of(&columns, &widths) > LINE {
            columns.remove(0);
        }
        lines(out, data, &columns, &widths, &headings);
        let rules: Vec<String> = columns.iter().map(|column| "─".repeat(widths[*column])).collect();
        out.push_str(format!("  {}", rules.join("  ")).trim_end());
        out.push('\n');
        for row in &rows {
            lines(out, data, &columns, &widths, row);
        }
        out.push('\n');
        if width == 0 {
            break;
        }
    }
}

fn length_of(columns: &[usize], widths: &[usize]) -> usize {
    columns.iter().map(|column| widths[*column] + 2).sum()
}

/// Columns of text are not broken into less than this.
const NARROWEST: usize = 14;

/// A row of a table, in as many lines as its longest text takes.
fn lines(out: &mut String, data: &DataTable, columns: &[usize], widths: &[usize], row: &[String]) {
    let broken: Vec<Vec<String>> =
        columns.iter().map(|column| folded(&row[*column], widths[*column])).collect();
    let tall = broken.iter().map(Vec::len).max().unwrap_or(0).max(1);
    for line in 0..tall {
        let fields: Vec<String> = columns
            .iter()
            .zip(&broken)
            .map(|(column, texts)| {
                let field = texts.get(line).map_or("", String::as_str);
                let gap = " ".repeat(widths[*column].saturating_sub(length(field)));
                if is_text(data, *column) { format!("{field}{gap}") } else { format!("{gap}{field}") }
            })
            .collect();
        out.push_str(format!("  {}", fields.join("  ")).trim_end());
        out.push('\n');
    }
}

/// A text in lines of at most so many characters.
fn folded(words: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split(' ').flat_map(|word| pieces(word, room.max(1))) {
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

fn cell(cell: Option<&Cell>) -> String {
    match cell {
        Some(Cell::Text(words)) => cut(visible(&with_addresses(words)), LINE * 4),
        Some(Cell::Integer(value)) => integer(*value).unicode(),
        Some(Cell::Number { value, error }) => number(*value, *error).unicode(),
        Some(Cell::Missing) | None => "–".to_string(),
    }
}

fn figure(out: &mut String, figure: &Figure) {
    let title = plain(&figure.title);
    wrap(out, &format!("Figure {}: {title}", figure.id), "", "  ");
    axes(out, &figure.y.label, &figure.x.label);
    all_series(out, figure);
    if let Some(note) = left_out_note(frame(figure).left_out) {
        wrap(out, &note, "  ", "  ");
    }
    out.push('\n');
}

fn axes(out: &mut String, y: &str, x: &str) {
    if !y.trim().is_empty() {
        wrap(out, &format!("{} over {}", unicode(y), unicode(x)), "  ", "  ");
    }
}

/// A line for each series.
fn all_series(out: &mut String, figure: &Figure) {
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
