//! Compares runs: what differs between their settings, then their figures on the same axes, tables of the same columns and maps
//! under each other.

use crate::literal::unhidden;
use crate::numbers::number;
use crate::{
    Block, Cell, DataTable, Document, Figure, Mark, Panel, Panels, Point, Scale, Section, Series, Verdict,
    literal,
};
use std::collections::BTreeMap;

/// Curves of two runs lie over each other up to so many of each; beyond, and with dots, each run has its own panel.
const MOST_OVERLAID: usize = 3;

/// One of several runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Compared {
    /// The name that tells it apart, plain text.
    pub name: String,
    /// What was asked: keys and values, plain text.
    pub settings: Vec<(String, String)>,
    /// Its report.
    pub document: Document,
}

/// One document out of several.
///
/// ```
/// use esscher_report::{Block, Compared, Document, Figure, Mark, Point, Scale, Section, Series, compare};
/// let run = |name: &str, height: f64| {
///     let series = Series { name: "error".into(), mark: Mark::Line, colour: 0, points: vec![Point::new(1.0, height)] };
///     let figure = Figure { id: "errors".into(), series: vec![series], ..Figure::default() };
///     let section = Section { id: "a".into(), blocks: vec![Block::Figure(figure)], ..Section::default() };
///     let document = Document { sections: vec![section], ..Document::default() };
///     Compared { name: name.into(), settings: vec![("height".into(), height.to_string())], document }
/// };
/// let both = compare(&[run("first", 1.0), run("second", 2.0)]);
/// assert_eq!(both.sections[0].title, "What differs between the runs");
/// let Block::Figure(figure) = &both.sections[1].blocks[0] else { panic!() };
/// let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
/// assert_eq!(names, ["first: error", "second: error"]);
/// let Block::Prose(told) = &both.sections[1].blocks[1] else { panic!() };
/// assert!(told.contains("error: by up to 1 (100 %)"));
/// ```
pub fn compare(runs: &[Compared]) -> Document {
    let names: Vec<String> = runs.iter().map(|run| literal(&run.name)).collect();
    let mut sections: Vec<Joined> = Vec::new();
    for (run, compared) in runs.iter().enumerate() {
        for section in &compared.document.sections {
            let place = sections.iter().position(|known| known.id == section.id).unwrap_or_else(|| {
                sections.push(Joined { id: section.id.clone(), parts: Vec::new() });
                sections.len() - 1
            });
            sections[place].parts.push((run, section));
        }
    }
    let provenance = runs
        .iter()
        .flat_map(|run| {
            let named =
                |(key, value): &(String, String)| (format!("{}: {key}", literal(&run.name)), value.clone());
            run.document.provenance.iter().map(named).collect::<Vec<_>>()
        })
        .collect();
    let joined = sections.iter().map(|section| section.section(&names));
    Document {
        title: format!("{} runs side by side", names.len()),
        summary: format!("The runs are {}.", names.join(", ")),
        sections: std::iter::once(differences(runs, &names)).chain(joined).collect(),
        provenance,
    }
}

/// The keys whose values are not the same in all runs.
fn differences(runs: &[Compared], names: &[String]) -> Section {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in runs.iter().flat_map(|run| &run.settings) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let value = |run: &Compared, key: &str| {
        run.settings.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    };
    let differs = |key: &&str| runs.iter().any(|run| value(run, key) != value(&runs[0], key));
    let (different, same): (Vec<&str>, Vec<&str>) = keys.into_iter().partition(differs);
    let lead = match (different.len(), same.len()) {
        (0, 0) => "Nothing is known about what these runs were asked.".to_string(),
        (0, _) => "The runs were asked the same: no key of their specifications differs.".to_string(),
        (1, 0) => "One key differs; there is no other.".to_string(),
        (1, 1) => "One key differs; one is the same.".to_string(),
        (1, same) => format!("One key differs; {same} are the same."),
        (many, 1) => format!("{many} keys differ; one is the same."),
        (many, same) => format!("{many} keys differ; {same} are the same."),
    };
    let mut blocks = vec![Block::Lead(lead)];
    if !different.is_empty() {
        let row = |key: &str| {
            let values = runs.iter().map(|run| value(run, key).map_or(Cell::Missing, Cell::from));
            std::iter::once(Cell::from(key)).chain(values).collect()
        };
        blocks.push(Block::Table(DataTable {
            id: "differences".to_string(),
            caption: "Keys of the specifications that differ, with the value in each run. No entry: the run has no such key.".to_string(),
            columns: std::iter::once("key".to_string()).chain(names.iter().cloned()).collect(),
            rows: different.iter().map(|key| row(key)).collect(),
        }));
    }
    Section::new("differences", "What differs between the runs", blocks)
}

/// Sections of the same id of several runs.
struct Joined<'a> {
    id: String,
    parts: Vec<(usize, &'a Section)>,
}

impl Joined<'_> {
    fn section(&self, names: &[String]) -> Section {
        let titles: Vec<(usize, &String)> =
            self.parts.iter().map(|(run, section)| (*run, &section.title)).collect();
        let mut blocks = Vec::new();
        let verdicts =
            self.parts.iter().filter_map(|(run, section)| Some((names[*run].clone(), section.verdict?)));
        let verdicts: Vec<(String, String)> =
            verdicts.map(|(name, verdict)| (name, word(verdict).to_string())).collect();
        if !verdicts.is_empty() {
            blocks.push(Block::Facts(verdicts));
        }
        let parts: Vec<(usize, &[Block])> =
            self.parts.iter().map(|(run, section)| (*run, section.blocks.as_slice())).collect();
        blocks.extend(join(&parts, names));
        Section::new(self.id.clone(), said_once(&titles, names), blocks)
    }
}

/// What all runs say alike once, what they say differently under their names.
fn said_once(said: &[(usize, &String)], names: &[String]) -> String {
    match said {
        [] => String::new(),
        [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => (*first).clone(),
        several => {
            let each: Vec<String> =
                several.iter().map(|(run, words)| format!("{}: {words}", names[*run])).collect();
            each.join("; ")
        }
    }
}

/// What makes blocks of different runs the same block: their kind and id, or their place among those of their kind.
#[derive(PartialEq)]
struct Key {
    kind: &'static str,
    id: String,
    place: usize,
}

fn keyed(blocks: &[Block]) -> Vec<(Key, &Block)> {
    let mut known: Vec<(Key, &Block)> = Vec::new();
    for block in blocks {
        let (kind, id) = match block {
            Block::Lead(_) => ("lead", ""),
            Block::Prose(_) => ("prose", ""),
            Block::Formula(_) => ("formula", ""),
            Block::Facts(_) => ("facts", ""),
            Block::Table(table) => ("table", table.id.as_str()),
            Block::Figure(figure) => ("figure", figure.id.as_str()),
            Block::Panels(panels) => ("panels", panels.id.as_str()),
            Block::HeatMap(map) => ("map", map.id.as_str()),
            Block::Tiles(tiles) => ("tiles", tiles.id.as_str()),
            // A title may hold numbers of its run.
            Block::Folded { id, title, .. } => ("folded", if id.is_empty() { title } else { id }.as_str()),
            Block::Cards(_) => continue,
        };
        let place = known.iter().filter(|(key, _)| key.kind == kind && key.id == id).count();
        known.push((Key { kind, id: id.to_string(), place }, block));
    }
    known
}

/// The blocks of several runs, those of the same key as one.
fn join(parts: &[(usize, &[Block])], names: &[String]) -> Vec<Block> {
    let mut groups: Vec<(Key, Vec<(usize, &Block)>)> = Vec::new();
    for (run, blocks) in parts {
        // What only a later run has stands behind what it stood behind there.
        let mut after = 0;
        for (key, block) in keyed(blocks) {
            match groups.iter().position(|(known, _)| *known == key) {
                Some(place) => {
                    groups[place].1.push((*run, block));
                    after = place + 1;
                }
                None => {
                    groups.insert(after, (key, vec![(*run, block)]));
                    after += 1;
                }
            }
        }
    }
    groups.iter().flat_map(|(_, same)| one(same, names)).collect()
}

/// What becomes of one block of some runs.
fn one(same: &[(usize, &Block)], names: &[String]) -> Vec<Block> {
    let Some((_, first)) = same.first() else { return Vec::new() };
    let is_alike = same.len() == names.len() && same.iter().all(|(_, other)| other == first);
    let each = |make: &dyn Fn(&str, usize, &Block) -> Option<Block>| -> Vec<Block> {
        same.iter().filter_map(|(run, block)| make(&names[*run], *run, block)).collect()
    };
    match first {
        Block::Figure(_) => {
            let figures: Vec<(usize, &Figure)> = same
                .iter()
                .filter_map(|(run, block)| match block {
                    Block::Figure(figure) => Some((*run, figure)),
                    _ => None,
                })
                .collect();
            drawn(&figures, names)
        }
        Block::Table(_) => tables(same, names),
        Block::Folded { id, .. } => {
            let titles = same.iter().filter_map(|(run, block)| match block {
                Block::Folded { title, .. } => Some((*run, title)),
                _ => None,
            });
            let titles: Vec<(usize, &String)> = titles.collect();
            let title = said_once(&titles, names);
            let parts: Vec<(usize, &[Block])> =
                same.iter().map(|(run, block)| (*run, block.folded())).collect();
            vec![Block::Folded { id: id.clone(), title, blocks: join(&parts, names) }]
        }
        _ if is_alike => vec![(*first).clone()],
        Block::Lead(_) | Block::Prose(_) => each(&|name, _, block| match block {
            Block::Lead(words) | Block::Prose(words) => Some(Block::Prose(format!("**{name}.** {words}"))),
            _ => None,
        }),
        Block::Facts(_) => each(&|name, _, block| match block {
            Block::Facts(facts) => Some(Block::Facts(
                facts.iter().map(|(key, value)| (format!("{name}: {key}"), value.clone())).collect(),
            )),
            _ => None,
        }),
        Block::Formula(_) | Block::Cards(_) => each(&|_, _, block| Some(block.clone())),
        // Colours and tiles cannot lie over each other: each map stands under the name of its run.
        Block::HeatMap(_) | Block::Tiles(_) | Block::Panels(_) => each(&|name, run, block| {
            let (mut block, part) = (block.clone(), format!("-{}", run + 1));
            let part = if run == same[0].0 { String::new() } else { part };
            let (id, title) = match &mut block {
                Block::HeatMap(map) => (&mut map.id, &mut map.title),
                Block::Tiles(tiles) => (&mut tiles.id, &mut tiles.title),
                Block::Panels(panels) => (&mut panels.id, &mut panels.title),
                _ => return None,
            };
            *id += &part;
            *title = format!("{name}: {title}");
            Some(block)
        }),
    }
}

/// The rows of all runs under each other, with a column that names the run; a table that is the same in all runs once.
fn tables(same: &[(usize, &Block)], names: &[String]) -> Vec<Block> {
    let mut made: Vec<DataTable> = Vec::new();
    let tables: Vec<(usize, &DataTable)> = same
        .iter()
        .filter_map(|(run, block)| match block {
            Block::Table(table) => Some((*run, table)),
            _ => None,
        })
        .collect();
    if let [(_, first), rest @ ..] = tables.as_slice()
        && tables.len() == names.len()
        && rest.iter().all(|(_, other)| other == first)
    {
        let caption = format!("{} The same in all runs.", first.caption);
        return vec![Block::Table(DataTable { caption, ..(*first).clone() })];
    }
    for (run, table) in tables {
        let mut columns = vec!["run".to_string()];
        columns.extend(table.columns.iter().cloned());
        let rows = table.rows.iter().map(|row| {
            let mut cells = vec![Cell::Text(names[run].clone())];
            cells.extend(row.iter().cloned());
            cells
        });
        match made.iter_mut().find(|known| known.columns == columns && known.caption == table.caption) {
            Some(known) => known.rows.extend(rows),
            None => {
                let id = if made.is_empty() { table.id.clone() } else { format!("{}-{}", table.id, run + 1) };
                made.push(DataTable { id, caption: table.caption.clone(), columns, rows: rows.collect() });
            }
        }
    }
    made.into_iter().map(Block::Table).collect()
}

/// One figure of several runs: curves of two runs over each other, anything else in a panel for each run; and in words how far
/// the runs are apart.
fn drawn(figures: &[(usize, &Figure)], names: &[String]) -> Vec<Block> {
    let [(_, first), ..] = figures else { return Vec::new() };
    let alike: Vec<(usize, &Figure)> =
        figures.iter().filter(|(_, other)| other.x == first.x && other.y == first.y).copied().collect();
    let others = figures.iter().filter(|(_, other)| other.x != first.x || other.y != first.y);
    let mut blocks = Vec::new();
    let titles: Vec<(usize, &String)> = alike.iter().map(|(run, figure)| (*run, &figure.title)).collect();
    // A title that states what one run found is not true of the other.
    let title = match titles.iter().all(|(_, title)| **title == first.title) {
        true => first.title.clone(),
        false => format!("{} against {}", plainly(&first.y.label), plainly(&first.x.label)),
    };
    let captions: Vec<(usize, &String)> = alike.iter().map(|(run, figure)| (*run, &figure.caption)).collect();
    let caption = said_once(&captions, names);
    let colours = Colours::of(&alike);
    if let [(one, left), (two, right)] = alike.as_slice()
        && [left, right].iter().all(|figure| is_overlaid(figure))
    {
        let series = [(one, left, Mark::Line), (two, right, Mark::Dashed)].into_iter().flat_map(
            |(run, figure, mark)| {
                colours.coloured(figure).map(move |series| {
                    let name = format!("{}: {}", names[*run], series.name);
                    Series { name, mark, ..series }
                })
            },
        );
        let caption = format!("{caption} Solid: {}. Dashed: {}.", names[*one], names[*two]);
        let series = series.collect();
        blocks.push(Block::Figure(Figure {
            title,
            caption: caption.trim_start().to_string(),
            series,
            ..(*left).clone()
        }));
    } else if alike.len() == 1 {
        let title = if names.len() > 1 { format!("{}: {title}", names[alike[0].0]) } else { title };
        blocks.push(Block::Figure(Figure { title, ..(*first).clone() }));
    } else {
        let panel = |(run, figure): &(usize, &Figure)| Panel {
            title: names[*run].clone(),
            series: colours.coloured(figure).collect(),
        };
        blocks.push(Block::Panels(Panels {
            id: first.id.clone(),
            title,
            caption,
            x: first.x.clone(),
            y: first.y.clone(),
            panels: alike.iter().map(panel).collect(),
        }));
    }
    if let [base, rest @ ..] = alike.as_slice() {
        blocks.extend(rest.iter().filter_map(|other| apart(base, other, names)).map(Block::Prose));
    }
    for (run, figure) in others {
        let (id, title) =
            (format!("{}-{}", figure.id, run + 1), format!("{}: {}", names[*run], figure.title));
        blocks.push(Block::Figure(Figure { id, title, ..(*figure).clone() }));
    }
    blocks
}

/// Few curves that all have names and no bands.
fn is_overlaid(figure: &Figure) -> bool {
    figure.series.len() <= MOST_OVERLAID
        && figure.series.iter().all(|series| {
            series.mark == Mark::Line && !series.name.trim().is_empty() && series.points.iter().all(is_narrow)
        })
}

/// Whether an interval is less than a line is wide.
fn is_narrow(point: &Point) -> bool {
    point.interval.is_none_or(|(low, high)| high - low <= 0.01 * point.y.abs())
}

/// Colours that mean the same in all runs: that of a series belongs to its name.
struct Colours(BTreeMap<String, usize>);

impl Colours {
    fn of(figures: &[(usize, &Figure)]) -> Self {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for (number, (_, figure)) in figures.iter().enumerate() {
            let taken: Vec<usize> = known.values().copied().collect();
            let mut free = taken.iter().max().map_or(0, |most| most + 1);
            // Series of one colour in one run, a measurement and its theory, stay together.
            let named = || figure.series.iter().filter(|series| !series.name.trim().is_empty());
            let mut common: BTreeMap<usize, usize> =
                named().filter_map(|series| Some((series.colour, *known.get(&series.name)?))).collect();
            for series in named() {
                let colour = *common.entry(series.colour).or_insert_with(|| {
                    if number == 0 || !taken.contains(&series.colour) {
                        return series.colour;
                    }
                    free += 1;
                    free - 1
                });
                known.entry(series.name.clone()).or_insert(colour);
            }
        }
        Colours(known)
    }

    /// The series of a figure in common colours; what has no name keeps the colour of what it belongs to.
    fn coloured<'a>(&'a self, figure: &'a Figure) -> impl Iterator<Item = Series> + 'a {
        let own: BTreeMap<usize, usize> = figure
            .series
            .iter()
            .rev()
            .filter_map(|series| Some((series.colour, *self.0.get(&series.name)?)))
            .collect();
        figure.series.iter().map(move |series| {
            let named = self.0.get(&series.name).or_else(|| own.get(&series.colour)).copied();
            Series { colour: named.unwrap_or(series.colour), ..series.clone() }
        })
    }
}

/// How far series of the same name are apart, in words.
fn apart(left: &(usize, &Figure), right: &(usize, &Figure), names: &[String]) -> Option<String> {
    let (mut equal, mut different) = (Vec::new(), Vec::new());
    for (place, series) in
        left.1.series.iter().enumerate().filter(|(_, series)| !series.name.trim().is_empty())
    {
        let same = |other: &&Series| other.name == series.name && other.mark == series.mark;
        // Guides of one name stand in the same order in both.
        let before = left.1.series[..place].iter().filter(same).count();
        let Some(other) = right.1.series.iter().filter(same).nth(before) else { continue };
        let Some(apart) = Apart::largest(&series.points, &other.points, left.1.y.scale) else { continue };
        match apart.difference == 0.0 {
            true => equal.push(plainly(&series.name)),
            false => different.push(format!(
                "{}: by up to {}, at {} = {}",
                plainly(&series.name),
                apart.words(left.1.y.scale),
                plainly(&left.1.x.label),
                short(apart.x)
            )),
        }
    }
    let (one, two) = (&names[left.0], &names[right.0]);
    let list = |items: &[String]| items.join("; ");
    match (different.is_empty(), equal.is_empty()) {
        (true, true) => None,
        (true, false) => {
            Some(format!("{one} and {two} agree at every point that both have: {}.", list(&equal)))
        }
        (false, true) => Some(format!("How far {one} and {two} are apart. {}.", list(&different))),
        (false, false) => Some(format!(
            "How far {one} and {two} are apart. {}. The same in both: {}.",
            list(&different),
            list(&equal)
        )),
    }
}

/// Where two curves are farthest apart.
struct Apart {
    x: f64,
    difference: f64,
    /// Of the value of the first curve; nothing where that is zero.
    share: Option<f64>,
}

impl Apart {
    /// At a place that both have: by the difference, or by its share where that is what an axis shows.
    fn largest(left: &[Point], right: &[Point], scale: Scale) -> Option<Self> {
        let pairs =
            left.iter().filter_map(|point| Some((point, right.iter().find(|other| other.x == point.x)?)));
        let all = pairs.map(|(point, other)| {
            let difference = (point.y - other.y).abs();
            let share = (point.y != 0.0).then(|| difference / point.y.abs());
            Apart { x: point.x, difference, share }
        });
        let seen = |apart: &Apart| match scale {
            Scale::Linear => apart.difference,
            Scale::Logarithmic => apart.share.unwrap_or(0.0),
        };
        all.filter(|apart| apart.difference.is_finite())
            .max_by(|one, other| seen(one).total_cmp(&seen(other)))
    }

    fn words(&self, scale: Scale) -> String {
        let share = self.share.map(|share| format!("{} %", short(100.0 * share)));
        match (scale, share) {
            (Scale::Logarithmic, Some(share)) => share,
            (Scale::Linear, Some(share)) => format!("{} ({share})", short(self.difference)),
            (_, None) => short(self.difference),
        }
    }
}

/// The plain text of a label as prose.
fn plainly(label: &str) -> String {
    literal(unhidden(label))
}

/// A number to two figures.
fn short(value: f64) -> String {
    number(format!("{value:.1e}").parse().unwrap_or(value), None).unicode()
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::NotMeasurable => "not measurable here",
    }
}
