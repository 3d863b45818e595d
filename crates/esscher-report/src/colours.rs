//! One colour for each thing: series of the same name have the same colour in all figures of a page.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{Block, Document};
use crate::figure::Series;
use crate::palette::{COUNT, GREY};

/// The document with the colours of its series given by name, in the order of their appearance.
///
/// Names that share a colour within a figure, a measurement and its theory, go on sharing it. Grey stays grey. A figure
/// that uses more colours than there are keeps its own, and so does one in which the names contradict those of others.
pub(crate) fn one_for_each_thing(document: &Document) -> Document {
    let mut document = document.clone();
    let mut figures: Vec<Vec<&mut Series>> = Vec::new();
    for section in &mut document.sections {
        collect(&mut section.blocks, &mut figures);
    }
    let told: Vec<Figure> = figures.iter().map(|series| Figure::of(series)).collect();
    let groups = joined(&told);
    let colours = chosen(&told, &groups);
    for (series, figure) in figures.into_iter().zip(&told) {
        // Two numbers of a figure must not become one.
        let mut given: BTreeMap<usize, usize> = BTreeMap::new();
        for (number, names) in &figure.names {
            let group = names.iter().find_map(|name| groups.get(name));
            if let Some(colour) = group.and_then(|group| colours.get(group)) {
                given.insert(*number, *colour);
            }
        }
        let different: BTreeSet<usize> = given.values().copied().collect();
        if given.len() != figure.names.len() || different.len() != given.len() {
            continue;
        }
        for one in series {
            if let Some(colour) = given.get(&one.colour) {
                one.colour = *colour;
            }
        }
    }
    document
}

/// The names of each colour number of a figure, grey aside.
#[derive(Default)]
struct Figure {
    names: BTreeMap<usize, BTreeSet<String>>,
    /// The numbers in the order of their appearance.
    order: Vec<usize>,
}

impl Figure {
    fn of(series: &[&mut Series]) -> Self {
        let mut figure = Figure::default();
        let mut numbers_of: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for one in series.iter().filter(|one| !one.name.trim().is_empty()) {
            numbers_of.entry(one.name.trim()).or_default().insert(one.colour);
        }
        for one in series.iter().filter(|one| one.colour % COUNT != GREY) {
            let names = figure.names.entry(one.colour).or_insert_with(|| {
                figure.order.push(one.colour);
                BTreeSet::new()
            });
            // A name in several colours, such as a bound, says nothing about one of them.
            if numbers_of.get(one.name.trim()).is_some_and(|numbers| numbers.len() == 1) {
                names.insert(one.name.trim().to_string());
            }
        }
        figure
    }

    fn is_plain(&self) -> bool {
        self.names.len() < COUNT && self.names.values().all(|names| !names.is_empty())
    }
}

/// For each name its group: names that share a colour somewhere are one thing.
fn joined(figures: &[Figure]) -> BTreeMap<String, usize> {
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    let mut next = 0;
    for figure in figures.iter().filter(|figure| figure.is_plain()) {
        for names in figure.order.iter().filter_map(|number| figure.names.get(number)) {
            let known: BTreeSet<usize> = names.iter().filter_map(|name| groups.get(name).copied()).collect();
            let group = known.first().copied().unwrap_or(next);
            next = next.max(group + 1);
            groups.values_mut().filter(|other| known.contains(other)).for_each(|other| *other = group);
            groups.extend(names.iter().map(|name| (name.clone(), group)));
        }
    }
    groups
}

/// A colour for each group, different from those of the groups that it meets in a figure; none if there are too few.
fn chosen(figures: &[Figure], groups: &BTreeMap<String, usize>) -> BTreeMap<usize, usize> {
    let in_figure = |figure: &Figure| -> Vec<(usize, usize)> {
        let group =
            |number: &usize| figure.names.get(number)?.iter().find_map(|name| groups.get(name).copied());
        figure.order.iter().filter_map(|number| Some((group(number)?, *number))).collect()
    };
    let together: Vec<Vec<(usize, usize)>> =
        figures.iter().filter(|figure| figure.is_plain()).map(in_figure).collect();
    let few = groups.values().collect::<BTreeSet<_>>().len() < COUNT;
    let mut colours: BTreeMap<usize, usize> = BTreeMap::new();
    for (group, number) in together.iter().flatten() {
        if colours.contains_key(group) {
            continue;
        }
        let met = together.iter().filter(|figure| figure.iter().any(|(other, _)| other == group)).flatten();
        let taken: BTreeSet<usize> = met.filter_map(|(other, _)| colours.get(other).copied()).collect();
        let used: BTreeSet<usize> = colours.values().copied().collect();
        let is_free =
            |colour: &usize| *colour != GREY && !taken.contains(colour) && !(few && used.contains(colour));
        let own = number % COUNT;
        if let Some(colour) = [own].into_iter().chain(0..COUNT).find(is_free) {
            colours.insert(*group, colour);
        }
    }
    colours
}

fn collect<'a>(blocks: &'a mut [Block], figures: &mut Vec<Vec<&'a mut Series>>) {
    for block in blocks {
        match block {
            Block::Figure(figure) => figures.push(figure.series.iter_mut().collect()),
            Block::Panels(panels) => {
                figures.push(panels.panels.iter_mut().flat_map(|panel| &mut panel.series).collect());
            }
            Block::Cards(cards) => {
                let pictures = cards.iter_mut().filter_map(|card| card.picture.as_mut());
                figures.extend(pictures.map(|picture| picture.series.iter_mut().collect()));
            }
            Block::Folded { blocks, .. } => collect(blocks, figures),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mark, Section};

    fn drawn(figures: &[&[(&str, usize)]]) -> Vec<Vec<usize>> {
        let figure = |series: &&[(&str, usize)]| {
            let one = |(name, colour): &(&str, usize)| Series {
                name: name.to_string(),
                mark: Mark::Line,
                colour: *colour,
                points: vec![],
            };
            Block::Figure(crate::Figure {
                series: series.iter().map(one).collect(),
                ..crate::Figure::default()
            })
        };
        let section = Section { blocks: figures.iter().map(figure).collect(), ..Section::default() };
        let document = one_for_each_thing(&Document { sections: vec![section], ..Document::default() });
        let colours = |block: &Block| match block {
            Block::Figure(figure) => figure.series.iter().map(|series| series.colour).collect(),
            _ => Vec::new(),
        };
        document.sections[0].blocks.iter().map(colours).collect()
    }

    #[test]
    fn a_name_has_one_colour() {
        let first: &[_] = &[("short", 0), ("short, theory", 0), ("long", 1)];
        assert_eq!(drawn(&[first, &[("long", 0), ("short", 1)]]), [vec![0, 0, 1], vec![1, 0]]);
        // What was not seen yet takes a colour that is free.
        assert_eq!(drawn(&[first, &[("other", 0), ("long", 1)]]), [vec![0, 0, 1], vec![2, 1]]);
    }

    #[test]
    fn grey_stays_and_too_many_or_contradicting_names_keep_their_own() {
        let grey: &[_] = &[("control", GREY), ("one", 0)];
        assert_eq!(drawn(&[grey, &[("control", 2), ("one", 1)]]), [vec![GREY, 0], vec![2, 0]]);
        let names: Vec<String> = (0..9).map(|number| number.to_string()).collect();
        let many: Vec<(&str, usize)> =
            names.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
        assert_eq!(drawn(&[&many, &[("3", 0), ("4", 1)]]), [(0..9).collect(), vec![0, 1]]);
        let pair: &[_] = &[("one", 0), ("two", 0)];
        assert_eq!(drawn(&[pair, &[("one", 3), ("two", 4)]]), [vec![0, 0], vec![3, 4]]);
        // A series without a name that shares its colour goes with it; one that is alone keeps the whole figure.
        assert_eq!(drawn(&[&[("one", 2)], &[("one", 5), ("", 5)]]), [vec![2], vec![2, 2]]);
        assert_eq!(drawn(&[&[("one", 2)], &[("one", 5), ("", 4)]]), [vec![2], vec![5, 4]]);
    }
}
