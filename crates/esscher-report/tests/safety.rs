//! No text and no number breaks an output: markup means itself, and every figure can be drawn.

use esscher_report::{
    Axis, Block, Cell, DataTable, Document, Figure, HeatMap, Mark, Point, Scale, Section, Series, Verdict,
    csv, html, latex, pdf, svg, text,
};
use proptest::prelude::*;

/// Text that tries to be more than text, between other text.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<zap>".to_string()),
        Just("</script><zap>".to_string()),
        Just("<!--<script><zap>".to_string()),
        Just("\" onzap=\"1".to_string()),
        Just("' onzap='1".to_string()),
        Just("</title></style><zap>".to_string()),
        Just("]]><zap>".to_string()),
        Just("$".to_string()),
        Just("`".to_string()),
        Just("**".to_string()),
        Just("a_".to_string()),
        Just("a_{".to_string()),
        Just("}".to_string()),
        Just("\\".to_string()),
        Just("\u{2028}\0\u{1b}".to_string()),
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn document_of(words: &str) -> Document {
    let words = || words.to_string();
    let figure = Figure {
        id: words(),
        title: words(),
        caption: words(),
        x: Axis { label: words(), scale: Scale::Linear },
        y: Axis { label: words(), scale: Scale::Logarithmic },
        series: vec![Series {
            name: words(),
            mark: Mark::Dots,
            colour: 9,
            points: vec![Point::with_error(1.0, 2.0, 3.0)],
        }],
    };
    let map = HeatMap {
        id: words(),
        title: words(),
        caption: words(),
        x: words(),
        y: words(),
        columns: vec![words(), words()],
        rows: vec![words(), words()],
        cells: vec![vec![Some(1.0), None], vec![Some(0.0)]],
        colour_label: words(),
        scale: Scale::Logarithmic,
        threshold: Some(0.5),
    };
    let table = DataTable {
        id: words(),
        caption: words(),
        columns: vec![words()],
        rows: [vec![Cell::Text(words())], vec![Cell::Missing], vec![]].into_iter().cycle().take(20).collect(),
    };
    let section = || Section {
        id: words(),
        title: words(),
        verdict: Some(Verdict::Holds),
        blocks: vec![
            Block::Prose(words()),
            Block::Formula(words()),
            Block::Facts(vec![(words(), words())]),
            Block::Table(table.clone()),
            Block::Figure(figure.clone()),
            Block::HeatMap(map.clone()),
        ],
    };
    Document {
        title: words(),
        summary: words(),
        sections: vec![section(), section()],
        provenance: vec![(words(), words())],
    }
}

/// The drawing library once panicked on this.
const PANICKED: &str = "𝋀ꟕ_𝕒 ®a0\u{fffc}®𑤉𐹠ꬑ\u{a01}0";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn text_never_becomes_markup(words in hostile()) {
        let page = html(&document_of(&words));
        let quiet = html(&document_of("quiet"));
        prop_assert!(!page.contains("<zap"));
        prop_assert_eq!(page.matches("</script").count(), page.matches("<script").count());
        // A page may lack KaTeX but never gains a script.
        prop_assert!(page.matches("<script").count() <= quiet.matches("<script").count() + 1);
        let (markup, _) = page.split_once("<script type=\"application/json\">").unwrap_or((&page, ""));
        let body = markup.split_once("<body>").map_or(markup, |(_, body)| body);
        prop_assert!(!body.contains("\" onzap=") && !body.contains("' onzap="));
        // Every tag is one that this crate writes.
        for piece in body.split('<').skip(1) {
            let name: String = piece.trim_start_matches('/').chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
            let known = [
                "a", "button", "circle", "code", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "footer", "g", "h1", "h2",
                "header", "li", "main", "nav", "ol", "p", "path", "rect", "section", "small", "span", "strong", "sub", "summary", "sup", "svg",
                "table", "tbody", "td", "text", "th", "thead", "title", "tr", "tspan", "ul",
            ];
            prop_assert!(known.contains(&name.as_str()), "{}", piece);
        }
    }

    #[test]
    fn every_text_can_be_drawn_and_written(words in prop_oneof![hostile(), Just(PANICKED.to_string())]) {
        let document = document_of(&words);
        for block in &document.sections[0].blocks {
            if let Some(drawing) = block.drawing() {
                prop_assert!(pdf(drawing).is_ok());
                csv::drawing(drawing);
                latex::drawing(drawing);
            }
            if let Block::Table(table) = block {
                csv::table(table);
                latex::table(table);
            }
        }
        let rendered = text(&document);
        prop_assert!(!rendered.chars().any(|c| c.is_control() && c != '\n'));
    }

    #[test]
    fn every_number_can_be_drawn_and_written(
        points in prop::collection::vec((any::<f64>(), any::<f64>(), prop::option::of((any::<f64>(), any::<f64>()))), 0..20),
        logarithmic in any::<(bool, bool)>(),
    ) {
        let scale = |logarithmic| if logarithmic { Scale::Logarithmic } else { Scale::Linear };
        let axis = |logarithmic| Axis { label: "a".into(), scale: scale(logarithmic) };
        let points: Vec<Point> = points.into_iter().map(|(x, y, interval)| Point { x, y, interval }).collect();
        let series = [Mark::Line, Mark::Dashed, Mark::Dots]
            .map(|mark| Series { name: "s".into(), mark, colour: 0, points: points.clone() });
        let figure = Figure { x: axis(logarithmic.0), y: axis(logarithmic.1), series: series.to_vec(), ..Figure::default() };
        let drawing = svg(&figure);
        prop_assert!(!drawing.contains("NaN") && !drawing.contains("inf"));
        prop_assert!(pdf(&figure).is_ok());
        let cells = points.iter().map(|point| vec![Cell::Number { value: point.x, error: Some(point.y) }]).collect();
        latex::table(&DataTable { columns: vec!["c".into()], rows: cells, ..DataTable::default() });
        let cells = points.iter().map(|point| vec![Some(point.x), None, Some(point.y)]).collect();
        let threshold = points.first().map(|point| point.y);
        let map = HeatMap { cells, scale: scale(logarithmic.0), threshold, ..HeatMap::default() };
        let drawing = svg(&map);
        prop_assert!(!drawing.contains("=\"NaN") && !drawing.contains("=\"inf") && !drawing.contains("MNaN"));
        prop_assert!(pdf(&map).is_ok());
        let blocks = vec![Block::Figure(figure), Block::HeatMap(map)];
        let section = Section { blocks, ..Section::default() };
        html(&Document { sections: vec![section], ..Document::default() });
    }
}
