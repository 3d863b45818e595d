//! What the outputs say, on one small document, and that they say the same each time.

use esscher_report::{
    Axis, Block, Cell, DataTable, Document, Figure, HeatMap, Mark, Point, Scale, Section, Series, Verdict,
    csv, html, latex, pdf, png, svg, text,
};

fn figure() -> Figure {
    let axis = |label: &str| Axis { label: label.into(), scale: Scale::Logarithmic };
    let measured = [(1.0, 0.5), (10.0, 0.05), (100.0, 0.0)];
    Figure {
        id: "rate".into(),
        title: r"Error against $L$".into(),
        caption: "Bars: standard error.".into(),
        x: axis("prompt length L"),
        y: axis("error ε ≤ σ²"),
        series: vec![
            Series {
                name: "measured".into(),
                mark: Mark::Dots,
                colour: 0,
                points: measured.map(|(x, y)| Point::with_error(x, y, 0.2 * y)).to_vec(),
            },
            Series {
                name: "theory".into(),
                mark: Mark::Dashed,
                colour: 0,
                points: vec![Point::new(1.0, 1.0), Point::new(100.0, 0.01)],
            },
        ],
    }
}

fn map() -> HeatMap {
    let names = |count: usize| (0..count).map(|number| number.to_string()).collect();
    HeatMap {
        id: "heads".into(),
        title: r"Error of each head, $\varepsilon$".into(),
        caption: "One prompt.".into(),
        x: "head".into(),
        y: "layer".into(),
        columns: names(3),
        rows: names(2),
        cells: vec![vec![Some(1e-4), Some(0.01), Some(1.0)], vec![Some(0.0), None, Some(0.2)]],
        colour_label: "error ε_L".into(),
        scale: Scale::Logarithmic,
        threshold: Some(0.01),
    }
}

fn table() -> DataTable {
    let number = |value, error| Cell::Number { value, error };
    DataTable {
        id: "slopes".into(),
        caption: r"Slopes for each $\tau$".into(),
        columns: vec!["law".into(), r"$\tau$".into(), "prompts".into(), "slope".into()],
        rows: vec![
            vec![
                Cell::Text("Gaussian, \"plain\"".into()),
                number(0.5, None),
                Cell::Integer(1_000_000),
                number(-0.5003, Some(0.0012)),
            ],
            vec![
                Cell::Text("50 % & **more**".into()),
                number(2.0, None),
                Cell::Integer(20_000),
                Cell::Missing,
            ],
            vec![
                Cell::Text("σ² mixture".into()),
                number(1e-9, None),
                Cell::Missing,
                number(1.5e-7, Some(4e-8)),
            ],
        ],
    }
}

fn document() -> Document {
    Document {
        title: "A small report".into(),
        summary: r"Of $T[\mu]$ and `code`.".into(),
        sections: vec![Section {
            id: "rate".into(),
            title: r"Rate $L^{-1}$".into(),
            verdict: Some(Verdict::Holds),
            blocks: vec![
                Block::Facts(vec![("Statement".into(), r"$\varepsilon \le C/L$".into())]),
                Block::Formula(r"\varepsilon(L) = \frac{\sigma}{\sqrt{L}}".into()),
                Block::Figure(figure()),
                Block::Table(table()),
            ],
        }],
        provenance: vec![("program".into(), "esscher".into()), ("seed".into(), "7".into())],
    }
}

#[test]
fn text_is_compact_and_aligned() {
    insta::assert_snapshot!(text(&document()));
}

#[test]
fn csv_has_every_digit() {
    insta::assert_snapshot!(format!("{}\n{}", csv::table(&table()), csv::figure(&figure())));
}

#[test]
fn latex_is_a_booktabs_tabular() {
    insta::assert_snapshot!(format!("{}\n{}", latex::table(&table()), latex::figure(&figure())));
}

#[test]
fn the_drawing_has_raised_powers_and_says_what_it_leaves_out() {
    insta::assert_snapshot!(svg(&figure()));
}

#[test]
fn drawings_and_pages_are_the_same_bytes_each_time() -> Result<(), esscher_report::DrawingError> {
    assert_eq!(svg(&figure()), svg(&figure()));
    assert_eq!(pdf(&figure())?, pdf(&figure())?);
    assert_eq!(png(&figure())?, png(&figure())?);
    assert_eq!(html(&document()), html(&document()));
    // Bands are translucent, and opacities are resources of a PDF.
    let bands = (0..6).map(|colour| {
        let points = [1.0, 2.0].map(|x| Point::with_error(x, x + colour as f64, 0.5)).to_vec();
        Series { name: colour.to_string(), mark: Mark::Line, colour, points }
    });
    let bands = Figure { series: bands.collect(), ..figure() };
    let first = pdf(&bands)?;
    assert!((0..8).all(|_| pdf(&bands).is_ok_and(|again| again == first)));
    Ok(())
}

#[test]
fn a_heat_map_has_the_same_numbers_in_every_output() -> Result<(), esscher_report::DrawingError> {
    let data = "layer,head,error ε_L\n0,0,0.0001\n0,1,0.01\n0,2,1\n1,0,0\n1,1,\n1,2,0.2\n";
    assert_eq!(csv::drawing(&map()), data);
    assert!(latex::drawing(&map()).contains("1 & $0$ & -- & $0.2$ \\\\\n"), "{}", latex::heat_map(&map()));
    let section = Section { blocks: vec![Block::HeatMap(map())], ..Section::default() };
    let document = Document { sections: vec![section], ..Document::default() };
    let words = text(&document);
    assert!(words.contains("  0  ▁ ▅ █\n  1  × / ▇\n"), "{words}");
    let page = html(&document);
    let legend = ["at or below 0.01: 3 of 5", "not measured: 1", "not on the scale: 1"];
    for key in legend {
        assert!(words.contains(key) && svg(&map()).contains(key), "{key}");
        // Once in the static drawing, once beside the interactive one.
        assert_eq!(page.matches(key).count(), 2, "{key}");
    }
    let drawn = page_data(&page);
    assert_eq!(drawn["files"][0]["csv"], data);
    assert_eq!(drawn["figures"][0]["cells"][0][2], serde_json::json!([1.0, 255]));
    assert_eq!(drawn["ramp"]["paint"][255], "#fde725");
    assert!(pdf(&map())?.starts_with(b"%PDF") && png(&map())?.starts_with(b"\x89PNG"));
    assert_eq!(svg(&map()), svg(&map()));
    Ok(())
}

#[test]
fn heat_maps_of_several_runs_stand_under_each_other() {
    let run = || {
        let blocks = vec![Block::HeatMap(map()), Block::Prose("After.".into())];
        Document { sections: vec![Section { blocks, ..Section::default() }], ..Document::default() }
    };
    let both = esscher_report::compare(&[("first".into(), run()), ("second".into(), run())]);
    let ids: Vec<_> =
        both.sections[0].blocks.iter().map(|block| block.drawing().map(|map| map.id())).collect();
    assert_eq!(ids, [Some("heads"), Some("heads-2"), None]);
}

/// What the script of a page reads.
fn page_data(page: &str) -> serde_json::Value {
    let opening = "<script type=\"application/json\">";
    let data = page.split_once(opening).and_then(|(_, after)| after.split_once("</script>"));
    data.and_then(|(data, _)| serde_json::from_str(data).ok()).unwrap_or_default()
}

#[test]
fn blocks_of_the_same_id_keep_their_own_data() {
    let section = |height: f64| {
        let points = vec![Point::new(1.0, height), Point::new(2.0, height)];
        let series = Series { name: "s".into(), mark: Mark::Line, colour: 0, points };
        let figure = Figure { id: "rate".into(), series: vec![series], ..Figure::default() };
        let rows = vec![vec![Cell::Number { value: height, error: None }]];
        let table = DataTable { id: "rate".into(), columns: vec!["c".into()], rows, ..DataTable::default() };
        let blocks = vec![Block::Figure(figure), Block::Table(table)];
        Section { id: "rate".into(), blocks, ..Section::default() }
    };
    let page = html(&Document { sections: vec![section(3.0), section(5.0)], ..Document::default() });
    let data = page_data(&page);
    for (number, height) in [3.0, 5.0].into_iter().enumerate() {
        assert!(page.contains(&format!("data-figure=\"{number}\" data-file=\"{}\"", 2 * number)));
        assert_eq!(data["figures"][number]["series"][0]["segments"][0][0][1], height);
        assert_eq!(data["files"][2 * number]["csv"], format!("series,x,y\ns,1,{height}\ns,2,{height}\n"));
        assert_eq!(data["files"][2 * number + 1]["csv"], format!("c\n{height}\n"));
    }
    let names: Vec<&str> =
        data["files"].as_array().into_iter().flatten().filter_map(|file| file["name"].as_str()).collect();
    assert_eq!(names, ["rate", "rate-2", "rate-3", "rate-4"]);
    for anchor in ["id=\"rate\"", "id=\"rate-2\"", "href=\"#rate\"", "href=\"#rate-2\""] {
        assert_eq!(page.matches(anchor).count(), 1, "{anchor}");
    }
}

#[test]
fn long_tables_are_folded_and_short_ones_are_not() {
    let page = |rows: usize| {
        let rows = vec![vec![Cell::Integer(1)]; rows];
        let table = DataTable { id: "t".into(), caption: "Of $x$".into(), columns: vec!["c".into()], rows };
        let section = Section { blocks: vec![Block::Table(table)], ..Section::default() };
        html(&Document { sections: vec![section], ..Document::default() })
    };
    assert!(!page(14).contains("<details"));
    let folded = page(15);
    let (before, after) = folded.split_once("<details>").unwrap_or_default();
    let (summary, _) = after.split_once("</summary>").unwrap_or_default();
    assert!(summary.contains("Of ") && summary.contains("15 rows"));
    // The buttons work while the table is folded, and do not unfold it.
    assert!(before.ends_with("LaTeX</button></span>") && !summary.contains("<button"));
}

#[test]
fn a_legend_says_once_what_reads_and_looks_the_same() {
    let series =
        |name: &str, mark| Series { name: name.into(), mark, colour: 1, points: vec![Point::new(1.0, 2.0)] };
    let series = vec![
        series("μ_L", Mark::Line),
        series("", Mark::Line),
        series("μ_L", Mark::Line),
        series("μ_L", Mark::Dashed),
    ];
    let y = Axis { label: "θ_{in}".into(), ..Axis::default() };
    let figure = Figure { id: "f".into(), y, series, ..Figure::default() };
    let drawing = svg(&figure);
    let lowered = |text: &str| format!("font-size=\"7.92\">{text}</tspan>");
    assert_eq!(drawing.matches(&lowered("L")).count(), 2);
    assert!(drawing.contains(">θ<tspan dy=\"2.5\" font-size=\"9\">in</tspan></text>"));
    let section = Section { blocks: vec![Block::Figure(figure)], ..Section::default() };
    let page = html(&Document { sections: vec![section], ..Document::default() });
    assert_eq!(page.matches("<span>μ<sub>L</sub></span>").count(), 2);
    assert!(page.contains("<p class=\"vertical\">θ<sub>in</sub></p>"));
    let data = page_data(&page);
    let entries: Vec<Option<u64>> =
        (0..4).map(|index| data["figures"][0]["series"][index]["entry"].as_u64()).collect();
    assert_eq!(entries, [Some(0), None, Some(0), Some(1)]);
}

#[test]
fn a_page_asks_the_network_for_nothing() {
    let page = html(&document());
    assert!(page.contains("default-src &#39;none&#39;"));
    for outside in ["src=\"http", "href=\"http", "url(http", "@import", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_page_carries_only_the_libraries_it_needs() {
    let plain = Document { title: "Nothing but words".into(), ..Document::default() };
    assert!(html(&plain).len() < 40_000);
    assert!(html(&document()).len() < 1_500_000);
}

#[test]
fn thousands_of_points_are_drawn() {
    let points: Vec<Point> =
        (1..50_000).map(f64::from).map(|x| Point::with_error(x, (x / 1e4).sin(), 0.1)).collect();
    let series = [Mark::Line, Mark::Dots].map(|mark| Series {
        name: "many".into(),
        mark,
        colour: 0,
        points: points.clone(),
    });
    let figure = Figure { series: series.to_vec(), ..Figure::default() };
    assert!(pdf(&figure).is_ok_and(|bytes| bytes.starts_with(b"%PDF")));
}
