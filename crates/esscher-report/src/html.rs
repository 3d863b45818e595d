//! A document as one HTML file that needs nothing else: formulas, figures, data and scripts are inside.

use std::collections::BTreeSet;
use std::fmt::Write;

use base64::Engine;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::colours;
use crate::document::{Block, Card, Cell, DataTable, Document, Section, Verdict};
use crate::drawing::Drawing;
use crate::escape::{json_in_html, xml};
use crate::figure::Figure;
use crate::frame::{frame, left_out_note};
use crate::heat_map::{HeatMap, name};
use crate::latex::is_text;
use crate::legend::entries;
use crate::numbers::{integer, machine, number};
use crate::palette::{COUNT, DARK, LEVELS, LIGHT, ink_on, ramp};
use crate::panels::Panels;
use crate::prose::{self, Span, plain};
use crate::shading::shading;
use crate::subscript::{self, pieces};
use crate::svg::{colour_bar, key_swatch, svg, swatch, thumbnail};
use crate::tiles::{Tiles, Tone};
use crate::vega::{size_of_cells, vega};
use crate::{csv, latex};

/// How every page begins, by which a page of ours is known.
pub const BEGINNING: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
                             <meta name=\"generator\" content=\"Esscher\">\n";

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");
const KATEX_STYLE: &str = include_str!("../assets/katex.min.css");
const KATEX: &str = include_str!("../assets/katex.min.js");
/// In the order in which they need each other.
const VEGA: [&str; 3] = [
    include_str!("../assets/vega.min.js"),
    include_str!("../assets/vega-lite.min.js"),
    include_str!("../assets/vega-interpreter.js"),
];

/// Legends with more entries than this stand below their figure.
const MOST_BESIDE: usize = 13;
/// Their size in pixels.
const LEGEND_SIZE: f64 = 13.6;
/// A legend below makes columns for names up to this width in pixels; wider ones are broken.
const WIDEST_NAME: f64 = 260.0;
/// Heights of a bar of colours in pixels.
const LEAST_BAR: f64 = 110.0;
const TALLEST_BAR: f64 = 600.0;
/// Tables with more rows than this are folded.
const MOST_ROWS: usize = 14;
/// Cells of text up to this many characters stay on one line.
const SHORT: usize = 24;
/// So do headings up to this many.
const BRIEF: usize = 10;

/// A document as one HTML file that opens without a network, on screen, on paper and without JavaScript.
///
/// Nothing in the document can become markup, and the page forbids itself every request and every script but its own.
/// Sections, figures and tables whose ids are taken get `-2`, `-3`, … in their links and files. Series of the same name
/// have the same colour in all figures of the page.
pub fn html(document: &Document) -> String {
    let mut content = Content::default();
    content.write(&colours::one_for_each_thing(document));
    let body = &content.body;
    let has_formulas = body.contains("<span class=\"formula") || body.contains("<div class=\"formula");
    let has_figures = content.figures.iter().any(|figure| !figure.is_null());
    let mut scripts: Vec<&str> = Vec::new();
    if has_formulas {
        scripts.push(KATEX);
    }
    if has_figures {
        scripts.extend(VEGA);
    }
    scripts.push(SCRIPT);

    let mut page = String::with_capacity(body.len() + 2_000_000);
    let _ = write!(
        page,
        "{BEGINNING}<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n",
        xml(&policy(&scripts)),
        xml(&plain(&document.title)),
    );
    if has_formulas {
        let _ = writeln!(page, "<style>{KATEX_STYLE}</style>");
    }
    let _ = writeln!(page, "<style>{STYLE}{}</style>\n</head>\n<body>\n{body}", palette_style());
    let _ = writeln!(
        page,
        "<script type=\"application/json\">{}</script>",
        json_in_html(&content.data().to_string())
    );
    for script in scripts {
        let _ = writeln!(page, "<script>{script}</script>");
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// No request may leave the page, and only the scripts of this crate run: each is named by its hash.
fn policy(scripts: &[&str]) -> String {
    let hashes: Vec<String> = scripts
        .iter()
        .map(|script| {
            let digest = Sha256::digest(script.as_bytes());
            format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(digest))
        })
        .collect();
    format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; font-src data:; img-src data: blob:; \
         base-uri 'none'; form-action 'none'",
        hashes.join(" ")
    )
}

/// The colours of series, for legends: the same that the script hands to the figures.
fn palette_style() -> String {
    let rules = |palette: [&str; COUNT]| {
        palette
            .iter()
            .enumerate()
            .map(|(number, paint)| format!("--series-{number}:{paint};"))
            .collect::<String>()
    };
    let mut style = format!(
        ":root{{{}}}\n:root[data-theme=dark]{{{dark}}}\n\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n",
        rules(LIGHT),
        dark = rules(DARK)
    );
    for number in 0..COUNT {
        let _ = writeln!(style, ".series-{number}{{color:var(--series-{number})}}");
    }
    style
}

/// What a page shows, and beside it what its script needs: figures to draw and files to offer.
///
/// Both are found by their position, so that blocks of the same id never share data.
#[derive(Default)]
struct Content {
    body: String,
    figures: Vec<Value>,
    files: Vec<Value>,
    file_names: Taken,
    anchors: Taken,
    /// A number with its error in brackets, to be explained.
    bracketed: Option<(f64, f64)>,
}

/// Names that are taken.
#[derive(Default)]
struct Taken(BTreeSet<String>);

impl Taken {
    /// The name if it is free, otherwise with the first number that makes it so.
    fn free(&mut self, name: &str) -> String {
        let mut free = name.to_string();
        let mut number = 2;
        while !self.0.insert(free.clone()) {
            free = format!("{name}-{number}");
            number += 1;
        }
        free
    }
}

/// An id as the name of a file on every machine.
fn file_stem(id: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    let words: Vec<&str> = id.split(|character| !plain(character)).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "data".to_string() } else { words.join("-") }
}

impl Content {
    fn data(&self) -> Value {
        let palettes = json!({ "light": LIGHT, "dark": DARK });
        let mut data = json!({ "figures": self.figures, "files": self.files, "palettes": palettes });
        if self.figures.iter().any(|figure| figure.get("cells").is_some()) {
            let colours = |colour: fn(usize) -> String| (0..LEVELS).map(colour).collect::<Vec<_>>();
            data["ramp"] =
                json!({ "paint": colours(ramp), "ink": colours(|level| ink_on(level).to_string()) });
        }
        data
    }

    fn write(&mut self, document: &Document) {
        self.body.push_str(
            "<button type=\"button\" class=\"theme\" title=\"Light or dark\" aria-label=\"Switch between light and dark\">\
             <span aria-hidden=\"true\">◐</span></button>\n",
        );
        // The style numbers the sections as the contents do.
        self.body.push_str(if is_long(document) { "<main class=\"numbered\">\n" } else { "<main>\n" });
        let _ = writeln!(self.body, "<header>\n<h1>{}</h1>", inline(&document.title));
        if !document.summary.trim().is_empty() {
            let _ = writeln!(self.body, "<p class=\"summary\">{}</p>", inline(&document.summary));
        }
        self.body.push_str("</header>\n");
        let sections: Vec<(String, &Section)> =
            document.sections.iter().map(|section| (self.anchors.free(&section.id), section)).collect();
        if is_long(document) {
            contents(&mut self.body, &sections);
        }
        for (anchor, section) in &sections {
            let _ = writeln!(
                self.body,
                "<section id=\"{}\"{}>\n<h2>{}{}</h2>",
                xml(anchor),
                if is_counted(section, &document.sections) { "" } else { UNCOUNTED },
                inline(&section.title),
                section.verdict.map_or_else(String::new, |verdict| format!(" {}", badge(verdict)))
            );
            for block in &section.blocks {
                self.write_block(block);
            }
            self.body.push_str("</section>\n");
        }
        if let Some((value, error)) = self.bracketed {
            let (short, long) = (number(value, Some(error)), number(value, Some(error)).spread_out());
            let _ = writeln!(
                self.body,
                "<p class=\"reading\">How to read numbers: {} means {}: the digits in brackets are the error of the last digits.</p>",
                short.html(),
                long.html()
            );
        }
        provenance(&mut self.body, &document.provenance);
        self.body.push_str("</main>\n");
    }

    fn write_block(&mut self, block: &Block) {
        let out = &mut self.body;
        match block {
            Block::Lead(prose) => {
                let _ = writeln!(out, "<p class=\"lead\">{}</p>", inline(prose));
            }
            Block::Prose(prose) => {
                let _ = writeln!(out, "<p>{}</p>", inline(prose));
            }
            Block::Formula(source) => {
                let _ = writeln!(out, "<div class=\"formula displayed\">{}</div>", xml(source));
            }
            Block::Facts(facts) => {
                out.push_str("<dl>\n");
                for (name, value) in facts {
                    let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", inline(name), inline(value));
                }
                out.push_str("</dl>\n");
            }
            Block::Table(table) => {
                write_table(out, table, self.files.len());
                self.bracketed = self.bracketed.or_else(|| bracketed(table));
                self.add_files(&table.id, csv::table(table), latex::table(table));
            }
            Block::Figure(figure) => self.write_drawing(figure.into()),
            Block::Panels(panels) => self.write_drawing(panels.into()),
            Block::HeatMap(map) => self.write_drawing(map.into()),
            Block::Tiles(tiles) => self.write_drawing(tiles.into()),
            Block::Cards(cards) => write_cards(out, cards),
            Block::Folded { id, title, blocks } => {
                let id = match id.is_empty() {
                    true => String::new(),
                    false => format!(" id=\"{}\"", xml(&self.anchors.free(id))),
                };
                let _ = writeln!(
                    out,
                    "<details class=\"folded\"{id}>\n<summary>{}</summary>\n<div class=\"inside\">",
                    inline(title)
                );
                for block in blocks {
                    self.write_block(block);
                }
                self.body.push_str("</div>\n</details>\n");
            }
        }
    }

    fn write_drawing(&mut self, drawing: Drawing) {
        write_drawing(&mut self.body, drawing, self.figures.len(), self.files.len());
        self.figures.push(vega(drawing));
        self.add_files(drawing.id(), csv::drawing(drawing), latex::drawing(drawing));
    }

    fn add_files(&mut self, id: &str, csv: String, tex: String) {
        let name = self.file_names.free(&file_stem(id));
        self.files.push(json!({ "name": name, "csv": csv, "tex": tex }));
    }
}

/// Whether a document has contents.
fn is_long(document: &Document) -> bool {
    document.sections.len() >= 2
}

fn contents(out: &mut String, sections: &[(String, &Section)]) {
    out.push_str("<nav aria-label=\"Contents\">\n<details open>\n");
    let count = |verdict| sections.iter().filter(|(_, section)| section.verdict == Some(verdict)).count();
    let tally: Vec<String> = [
        (Verdict::Holds, "holds", "hold"),
        (Verdict::Fails, "fails", "fail"),
        (Verdict::NotMeasurable, "not measurable", "not measurable"),
    ]
    .into_iter()
    .filter_map(|(verdict, one, many)| match count(verdict) {
        0 => None,
        1 => Some(format!("1 {one}")),
        several => Some(format!("{several} {many}")),
    })
    .collect();
    let tally =
        if tally.is_empty() { String::new() } else { format!(" <small>{}</small>", tally.join(", ")) };
    let _ = writeln!(out, "<summary>Contents{tally}</summary>\n<ol>");
    for (anchor, section) in sections {
        let _ = writeln!(
            out,
            "<li{}><a href=\"#{}\">{}</a>{}</li>",
            if is_counted(section, sections.iter().map(|(_, section)| *section)) { "" } else { UNCOUNTED },
            xml(anchor),
            unlinked(&section.title),
            section.verdict.map_or_else(String::new, sign)
        );
    }
    out.push_str("</ol>\n</details>\n<a class=\"top\" href=\"#top\" title=\"To the top of the page\">↑ top</a>\n</nav>\n");
}

const UNCOUNTED: &str = " class=\"uncounted\"";

/// Where claims are judged, claims are counted and nothing else: "claim 3" is what stands behind a 3.
fn is_counted<'a>(section: &Section, all: impl IntoIterator<Item = &'a Section>) -> bool {
    section.verdict.is_some() || all.into_iter().all(|section| section.verdict.is_none())
}

/// The class and the sign of a verdict.
fn looks(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Holds => ("holds", "✓"),
        Verdict::Fails => ("fails", "✗"),
        Verdict::NotMeasurable => ("undecided", "?"),
    }
}

/// A verdict as a sign, where there is no room for words.
fn sign(verdict: Verdict) -> String {
    let (class, sign) = looks(verdict);
    let words = verdict.words();
    format!(
        " <span class=\"sign {class}\" role=\"img\" aria-label=\"{words}\" title=\"{words}\">{sign}</span>"
    )
}

/// Cards that lead to sections as a whole, so that nothing in them is a link of its own.
fn write_cards(out: &mut String, cards: &[Card]) {
    out.push_str("<ul class=\"cards\">\n");
    for card in cards {
        let class = card.verdict.map_or("", |verdict| looks(verdict).0);
        let _ = write!(
            out,
            "<li><a class=\"card {class}\" href=\"#{}\">{}<span class=\"title\">{}</span>",
            xml(&card.section),
            card.verdict.map_or_else(String::new, badge),
            unlinked(&card.title)
        );
        for (class, prose) in [("amount", &card.number), ("meaning", &card.meaning)] {
            if !prose.trim().is_empty() {
                let _ = write!(out, "<span class=\"{class}\">{}</span>", unlinked(prose));
            }
        }
        out.push_str(&card.picture.as_ref().map_or_else(String::new, thumbnail));
        out.push_str("</a></li>\n");
    }
    out.push_str("</ul>\n");
}

fn badge(verdict: Verdict) -> String {
    let (class, sign) = looks(verdict);
    format!(
        "<span class=\"verdict {class}\"><span aria-hidden=\"true\">{sign}</span> {}</span>",
        verdict.words()
    )
}

/// A number of a table with its error that pages write in brackets: one that is easy to explain, if there is one.
fn bracketed(table: &DataTable) -> Option<(f64, f64)> {
    let all = || {
        table.rows.iter().flatten().filter_map(|cell| match cell {
            Cell::Number { value, error: Some(error) } => {
                number(*value, Some(*error)).is_bracketed().then_some((*value, *error))
            }
            _ => None,
        })
    };
    all().find(|(value, _)| (0.01..1000.0).contains(&value.abs())).or_else(|| all().next())
}

fn write_table(out: &mut String, table: &DataTable, file: usize) {
    let width = table.rows.iter().map(Vec::len).chain([table.columns.len()]).max().unwrap_or(0);
    let classes: Vec<&str> = (0..width).map(|column| class(table, column)).collect();
    let folded = table.rows.len() > MOST_ROWS;
    let (caption, tools) = (inline(&table.caption), tools(&["csv", "tex"]));
    if folded {
        // A button within the summary would fold the table as well.
        let _ = writeln!(
            out,
            "<div class=\"table long\" data-file=\"{file}\">\n{tools}<details>\n<summary>\
             <span class=\"caption\">{caption}</span> <small>{} rows</small></summary>",
            table.rows.len()
        );
    } else {
        let _ = writeln!(
            out,
            "<div class=\"table\" data-file=\"{file}\">\n<div class=\"head\"><p class=\"caption\">{caption}</p>{tools}</div>"
        );
    }
    out.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    for (column, class) in classes.iter().enumerate() {
        let heading = table.columns.get(column).map_or("", String::as_str);
        let brief = if plain(heading).chars().count() <= BRIEF { " class=\"brief\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}><span{brief}>{}</span></th>", inline(heading));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (column, class) in classes.iter().enumerate() {
            let _ = write!(out, "<td{class}{}>{}</td>", all_digits(row.get(column)), cell(row.get(column)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out.push_str(if folded { "</details>\n</div>\n" } else { "</div>\n" });
}

/// What a column holds, for its style.
fn class(table: &DataTable, column: usize) -> &'static str {
    let is_short = |cell: &Cell| match cell {
        Cell::Text(text) => plain(text).chars().count() <= SHORT,
        _ => true,
    };
    if !is_text(table, column) {
        " class=\"number\""
    } else if table.rows.iter().filter_map(|row| row.get(column)).all(is_short) {
        " class=\"short\""
    } else {
        " class=\"long\""
    }
}

fn cell(cell: Option<&Cell>) -> String {
    match cell {
        Some(Cell::Text(text)) => inline(text),
        Some(Cell::Integer(value)) => integer(*value).html(),
        Some(Cell::Number { value, error }) => number(*value, *error).html(),
        Some(Cell::Missing) | None => "<span class=\"missing\">–</span>".to_string(),
    }
}

/// All digits of a number that is written with fewer, for those who point at it.
fn all_digits(cell: Option<&Cell>) -> String {
    let Some(Cell::Number { value, error }) = cell else { return String::new() };
    let (short, long) = (number(*value, *error).unicode(), machine(*value));
    let error = error.map_or_else(String::new, |error| format!(" ± {}", machine(error)));
    if short.replace('−', "-") == long {
        String::new()
    } else {
        format!(" title=\"{}\"", xml(&(long + &error)))
    }
}

/// What a page shows of one kind of drawing: around the axes, and what the drawing leaves out.
struct Surroundings {
    class: &'static str,
    /// Where the legend stands.
    place: &'static str,
    /// Of the axes.
    style: String,
    legend: String,
    note: Option<String>,
}

fn write_drawing(out: &mut String, drawing: Drawing, number: usize, file: usize) {
    let Surroundings { class, place, style, legend, note } = match drawing {
        Drawing::Figure(figure) => around_curves(figure),
        Drawing::Panels(panels) => around_curves(&panels.overlaid()),
        Drawing::Tiles(tiles) => around_tiles(tiles),
        Drawing::HeatMap(map) => around_cells(map),
    };
    let (class, place) = match drawing {
        Drawing::Panels(_) => (" class=\"panels\"", " below"),
        _ => (class, place),
    };
    let (x, y) = drawing.labels();
    let _ = writeln!(
        out,
        "<figure{class} data-figure=\"{number}\" data-file=\"{file}\">\n\
         <div class=\"head\"><p class=\"caption\">{}</p>{}</div>",
        inline(drawing.title()),
        tools(&["svg", "png", "csv", "tex"]),
    );
    let chart = match drawing {
        Drawing::Panels(panels) => charts(panels),
        Drawing::Tiles(tiles) => tile_table(tiles),
        Drawing::Figure(_) | Drawing::HeatMap(_) => String::new(),
    };
    let _ = write!(
        out,
        "<div class=\"drawing{place}\"><div class=\"plot\"{style}><p class=\"vertical\">{}</p>\
         <div class=\"chart\">{chart}</div><p class=\"horizontal\">{}</p></div>\n{legend}</div>\n\
         <div class=\"static\">{}</div>\n<figcaption>",
        subscript::html(y),
        subscript::html(x),
        svg(drawing),
    );
    if !drawing.caption().trim().is_empty() {
        let _ = write!(out, "<p>{}</p>", inline(drawing.caption()));
    }
    if let Some(note) = note {
        let _ = write!(out, "<p class=\"note\">{}</p>", xml(&note));
    }
    out.push_str("</figcaption>\n</figure>\n");
}

/// A place for each panel under its title.
fn charts(panels: &Panels) -> String {
    let one = |panel: &crate::Panel| {
        format!(
            "<div class=\"panel\"><p>{}</p><div class=\"view\"></div></div>",
            subscript::html(&panel.title)
        )
    };
    panels.panels.iter().map(one).collect()
}

/// Tiles are a table of the page: they need no script to be seen, and their words can be searched.
fn tile_table(tiles: &Tiles) -> String {
    let (rows, columns) = tiles.size();
    let has_words = tiles.has_words();
    let mut out =
        format!("<table class=\"tiles{}\">\n<thead><tr><td></td>", if has_words { " worded" } else { "" });
    // Narrow columns have room for a few names.
    let every = if has_words { 1 } else { 5 };
    for column in 0..columns {
        let name =
            if column % every == 0 { subscript::html(name(&tiles.columns, column)) } else { String::new() };
        let _ = write!(out, "<th scope=\"col\">{name}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in 0..rows {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", subscript::html(name(&tiles.rows, row)));
        for column in 0..columns {
            let Some(tile) = tiles.tile(row, column) else {
                out.push_str("<td></td>");
                continue;
            };
            let kind = tiles.kind(tile);
            let place = [name(&tiles.rows, row), name(&tiles.columns, column)].map(subscript::unicode);
            let [row, column] = [(&tiles.y, &place[0]), (&tiles.x, &place[1])]
                .map(|(axis, name)| format!("{} {name}", subscript::unicode(axis)));
            let told = [
                format!("{}, {}", row.trim(), column.trim()),
                kind.map_or_else(String::new, |kind| subscript::unicode(&kind.name)),
                subscript::unicode(&tile.words),
                subscript::unicode(&tile.detail),
            ];
            let told: Vec<&str> =
                told.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
            let words = if has_words { subscript::html(&tile.words) } else { String::new() };
            let (open, close) = match tile.target.is_empty() {
                true => ("<span".to_string(), "</span>"),
                false => (format!("<a href=\"#{}\"", xml(&tile.target)), "</a>"),
            };
            let _ = write!(
                out,
                "<td>{open} class=\"tile {}\" title=\"{}\"><span>{words}</span>{close}</td>",
                tone(kind.map_or(Tone::Open, |kind| kind.tone)),
                xml(&told.join("\n"))
            );
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>");
    out
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Open => "open",
        Tone::Bad => "bad",
    }
}

fn around_tiles(tiles: &Tiles) -> Surroundings {
    let mut legend = "<ul class=\"kinds\">\n".to_string();
    for (kind, count) in tiles.counted() {
        let _ = writeln!(
            legend,
            "<li><span class=\"tile {}\"></span><span>{}: {count}</span></li>",
            tone(kind.tone),
            subscript::html(&kind.name)
        );
    }
    legend.push_str("</ul>");
    let (_, columns) = tiles.size();
    let style = format!(" style=\"--columns:{columns}\"");
    Surroundings { class: " class=\"mosaic drawn\"", place: "", style, legend, note: None }
}

fn around_curves(figure: &Figure) -> Surroundings {
    let frame = frame(figure);
    let (entries, _) = entries(figure, &frame);
    let place = if entries.len() > MOST_BESIDE { " below" } else { "" };
    let widest =
        entries.iter().map(|entry| subscript::width(&pieces(entry.name), LEGEND_SIZE)).fold(0.0, f64::max);
    let mut legend = format!("<ul class=\"legend\" style=\"--name:{}px\">\n", widest.min(WIDEST_NAME).ceil());
    for (index, entry) in entries.iter().enumerate() {
        let end = entry.end.map_or_else(String::new, |end| format!(" data-end=\"{end:.4}\""));
        let once = if entry.ends_once { " data-once" } else { "" };
        let _ = writeln!(
            legend,
            "<li{end}{once}><button type=\"button\" data-entry=\"{index}\" aria-pressed=\"false\" class=\"series-{}\">\
             <svg width=\"26\" height=\"14\" aria-hidden=\"true\">{}</svg><span>{}</span></button></li>",
            entry.colour,
            swatch(entry, "currentColor"),
            subscript::html(entry.name),
        );
    }
    legend.push_str("</ul>");
    Surroundings { class: "", place, style: String::new(), legend, note: left_out_note(frame.left_out) }
}

fn around_cells(map: &HeatMap) -> Surroundings {
    let shading = shading(map);
    let (width, height) = size_of_cells(map);
    let mut legend = format!(
        "<div class=\"bar\">{}</div>\n<ul class=\"keys\">\n",
        colour_bar(map, shading.range, height.clamp(LEAST_BAR, TALLEST_BAR))
    );
    for key in &shading.keys {
        let _ = writeln!(
            legend,
            "<li><svg width=\"14\" height=\"14\" aria-hidden=\"true\">{}</svg><span>{}</span></li>",
            key_swatch(key, "var(--rule)", "var(--quiet)"),
            xml(&key.words),
        );
    }
    legend.push_str("</ul>");
    let style =
        format!(" style=\"--widest:{}px;--tallest:{}px\"", width.ceil(), height.max(LEAST_BAR).ceil());
    Surroundings { class: " class=\"cells\"", place: "", style, legend, note: None }
}

fn tools(kinds: &[&str]) -> String {
    let buttons: String = kinds
        .iter()
        .map(|kind| {
            let name = if *kind == "tex" { "LaTeX".to_string() } else { kind.to_uppercase() };
            format!(
                "<button type=\"button\" data-kind=\"{kind}\" title=\"Download as {name}\">{name}</button>"
            )
        })
        .collect();
    format!("<span class=\"tools\">{buttons}</span>")
}

fn provenance(out: &mut String, entries: &[(String, String)]) {
    if entries.is_empty() {
        return;
    }
    out.push_str("<footer>\n<h2>Provenance</h2>\n<table class=\"provenance\">\n");
    for (name, value) in entries {
        let _ = writeln!(out, "<tr><th scope=\"row\">{}</th><td>{}</td></tr>", xml(name), xml(value));
    }
    out.push_str("</table>\n</footer>\n");
}

/// Prose as HTML; formulas keep their source until the script sets them.
fn inline(prose: &str) -> String {
    spans(&prose::spans(prose), true)
}

/// Prose inside of a link: its own links are words.
fn unlinked(prose: &str) -> String {
    spans(&prose::spans(prose), false)
}

fn spans(pieces: &[Span], links: bool) -> String {
    pieces
        .iter()
        .map(|piece| match piece {
            Span::Text(text) => xml(text),
            Span::Formula(source) => format!("<span class=\"formula\">{}</span>", xml(source)),
            Span::Code(code) => format!("<code>{}</code>", xml(code)),
            Span::Strong(inside) => format!("<strong>{}</strong>", spans(inside, links)),
            Span::Link(words, _) if !links => spans(words, false),
            Span::Link(words, target) => {
                let outside = if target.starts_with('#') { "" } else { " rel=\"noopener\"" };
                format!("<a href=\"{}\"{outside}>{}</a>", xml(target), spans(words, false))
            }
        })
        .collect()
}
