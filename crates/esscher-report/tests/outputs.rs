//! What the outputs say, on one small document, and that they say the same each time.

use esscher_report::{
    Axis, Block, Card, Cell, Compared, DataTable, Document, Figure, HeatMap, Kind, Mark, Panel, Panels,
    Point, Scale, Section, Series, Tile, Tiles, Tone, Verdict, brief, csv, html, latex, pdf, png, svg, text,
};

fn figure() -> Figure {
    let axis = |label: &str| Axis::logarithmic(label);
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
    let mut other = run();
    if let Block::HeatMap(map) = &mut other.sections[0].blocks[0] {
        map.caption = "Another.".into();
    }
    let compared = |name: &str, document| Compared { name: name.into(), document, ..Compared::default() };
    let both = esscher_report::compare(&[compared("first", run()), compared("second", other)]);
    let ids: Vec<_> =
        both.sections[1].blocks.iter().map(|block| block.drawing().map(|map| map.id())).collect();
    assert_eq!(ids, [Some("heads"), Some("heads-2"), None]);
}

#[test]
fn a_comparison_says_what_was_asked_and_how_far_the_answers_are_apart() {
    let run = |name: &str, trials: &str, height: f64| {
        let series = |name: &str, mark, colour, height| {
            let points = vec![Point::new(1.0, 1.0), Point::new(2.0, height)];
            Series { name: name.into(), mark, colour, points }
        };
        // The second run draws its series the other way round: names decide about colours.
        let mut all = vec![series("simulated", Mark::Dots, 0, height), series("exact", Mark::Line, 1, 3.0)];
        if height > 4.0 {
            all.reverse();
            all.iter_mut().zip(0..).for_each(|(series, colour)| series.colour = colour);
        }
        let title = format!("It ends at {height}");
        let (x, y) = (Axis::linear("length"), Axis::linear("error"));
        let figure = Figure { id: "errors".into(), title, x, y, series: all, ..Figure::default() };
        let blocks = vec![Block::Lead("The same.".into()), Block::Figure(figure)];
        let section = Section { id: "a".into(), title: "Errors".into(), blocks, ..Section::default() };
        Compared {
            name: name.into(),
            settings: vec![("trials".into(), trials.into()), ("seed".into(), "0".into())],
            document: Document { sections: vec![section], ..Document::default() },
        }
    };
    let both = esscher_report::compare(&[run("one", "10", 4.0), run("two", "20", 5.0)]);
    assert!(
        matches!(&both.sections[0].blocks[0], Block::Lead(lead) if lead == "One key differs; one is the same.")
    );
    let [Block::Lead(same), Block::Panels(panels), Block::Prose(told)] = &both.sections[1].blocks[..] else {
        panic!("{:?}", both.sections[1].blocks)
    };
    assert_eq!((same.as_str(), panels.title.as_str()), ("The same.", "error against length"));
    let colour = |panel: usize, name: &str| {
        panels.panels[panel].series.iter().find(|series| series.name == name).map(|series| series.colour)
    };
    for name in ["simulated", "exact"] {
        assert_eq!(colour(0, name), colour(1, name), "{name}");
    }
    assert!(told.contains("simulated: by up to 1 (25 %), at length = 2"), "{told}");
    assert!(told.contains("The same in both: exact"), "{told}");
    let twice = esscher_report::compare(&[run("one", "10", 4.0), run("again", "10", 4.0)]);
    assert!(matches!(&twice.sections[0].blocks[0], Block::Lead(lead) if lead.contains("asked the same")));
    assert!(
        matches!(&twice.sections[1].blocks[2], Block::Prose(told) if told.contains("agree at every point"))
    );
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
    assert!(html(&plain).len() < 60_000);
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

fn of_blocks(blocks: Vec<Block>) -> Document {
    Document { sections: vec![Section::new("one", "One", blocks)], ..Document::default() }
}

#[test]
fn links_lead_out_of_a_page_and_into_what_is_folded() {
    let prose = "[the paper](https://arxiv.org/abs/2512.11784?a=b_c&d#e) and [how](#method)";
    let inside = vec![Block::Prose("Inside.".into())];
    let folded = |id: &str| Block::Folded { id: id.into(), title: "How".into(), blocks: inside.clone() };
    let rows = vec![vec![Cell::Text(prose.into())]];
    let table = DataTable { id: "t".into(), columns: vec!["c".into()], rows, ..DataTable::default() };
    let card = Card { section: "one".into(), title: prose.into(), ..Card::default() };
    let blocks = vec![
        Block::Lead(prose.into()),
        folded("method"),
        folded("method"),
        folded(""),
        Block::Table(table.clone()),
        Block::Cards(vec![card]),
    ];
    let page = html(&of_blocks(blocks.clone()));
    let out = "<a href=\"https://arxiv.org/abs/2512.11784?a=b_c&amp;d#e\" rel=\"noopener\">the paper</a>";
    assert!(
        page.contains(&format!("<p class=\"lead\">{out} and <a href=\"#method\">how</a></p>")),
        "{page:.3000}"
    );
    assert_eq!(page.matches("id=\"method\"").count(), 1);
    assert!(page.contains("id=\"method-2\"") && page.contains("<details class=\"folded\">"));
    // A card is a link as a whole.
    assert!(page.contains("<span class=\"title\">the paper and how</span>"));
    let tex = latex::table(&table);
    assert!(
        tex.contains(r"\href{https://arxiv.org/abs/2512.11784?a=b\_c\&d\#e}{the paper} and how"),
        "{tex}"
    );
    assert_eq!(csv::table(&table), "c\nthe paper and how\n");
    assert!(
        text(&of_blocks(blocks))
            .starts_with("One\n---\n\nthe paper (https://arxiv.org/abs/2512.11784?a=b_c&d#e) and how\n")
    );
}

fn tiles() -> Tiles {
    let tile = |kind, words: &str| {
        Some(Tile { kind, words: words.into(), detail: "error 0.01".into(), target: "one".into() })
    };
    Tiles {
        id: "verdicts".into(),
        title: "Two of three".into(),
        x: "head".into(),
        y: "layer".into(),
        columns: vec!["0".into(), "1".into()],
        rows: vec!["0".into(), "1".into()],
        kinds: [("accepted", Tone::Good), ("refused", Tone::Bad), ("trivial", Tone::Good)]
            .map(|(name, tone)| Kind { name: name.into(), tone })
            .to_vec(),
        cells: vec![vec![tile(0, "sink"), tile(1, "")], vec![None, tile(2, "local")]],
        ..Tiles::default()
    }
}

#[test]
fn tiles_say_the_same_in_every_output() -> Result<(), esscher_report::DrawingError> {
    assert_eq!(
        csv::drawing(&tiles()),
        "layer,head,kind,words,detail\n0,0,accepted,sink,error 0.01\n0,1,refused,,error 0.01\n1,1,trivial,local,error 0.01\n"
    );
    let document = of_blocks(vec![Block::Tiles(tiles())]);
    let words = text(&document);
    assert!(
        words.contains("  0  █ ▒\n  1    a\n") && words.contains("█ accepted: 1; ▒ refused: 1; a trivial: 1"),
        "{words}"
    );
    let page = html(&document);
    assert!(page.contains(
        "<a href=\"#one\" class=\"tile good\" title=\"layer 0, head 0\naccepted\nsink\nerror 0.01\">"
    ));
    // They need none of the libraries that draw.
    assert!(page.len() < 70_000 && svg(&tiles()).contains("accepted: 1"));
    assert!(png(&tiles())?.starts_with(b"\x89PNG"));
    Ok(())
}

#[test]
fn panels_share_axes_and_a_legend() -> Result<(), esscher_report::DrawingError> {
    let panel = |title: &str, height: f64| {
        let points = (0..5).map(|k| Point::new(f64::from(k), height * f64::from(k))).collect();
        let bound = vec![Point::new(1.0, 7.0 * height)];
        let bound = Series { name: String::new(), mark: Mark::Dashed, colour: 3, points: bound };
        let measured = Series { name: "measured".into(), mark: Mark::Line, colour: 3, points };
        Panel { title: title.into(), series: vec![measured, bound] }
    };
    let panels = Panels {
        id: "laws".into(),
        panels: vec![panel("normal", 1.0), panel("signs", 100.0)],
        y: Axis::from_zero("error"),
        ..Panels::default()
    };
    let drawing = svg(&panels);
    assert_eq!(drawing.matches(">measured<").count(), 1);
    assert_eq!(drawing.matches(">400<").count(), 1);
    let data = page_data(&html(&of_blocks(vec![Block::Panels(panels.clone())])));
    let scale = &data["figures"][0]["specification"]["layer"][0]["encoding"]["y"]["scale"]["domain"];
    assert_eq!(scale[0], 0.0);
    assert_eq!(data["figures"][0]["panels"].as_array().map(Vec::len), Some(2));
    let data = csv::drawing(&panels);
    assert!(
        data.contains("signs: measured,4,400\n") && data.contains("signs: measured (dashed),1,700\n"),
        "{data}"
    );
    assert!(png(&panels)?.starts_with(b"\x89PNG"));
    Ok(())
}

#[test]
fn brackets_are_explained_once_where_they_are_used() {
    let table = |error| {
        let rows = vec![vec![Cell::Number { value: 1.02, error }]];
        Block::Table(DataTable { columns: vec!["c".into()], rows, ..DataTable::default() })
    };
    let page = html(&of_blocks(vec![table(Some(0.06)), table(Some(0.05))]));
    assert_eq!(page.matches("1.02(6) means 1.02\u{a0}±\u{a0}0.06").count(), 1);
    assert!(page.contains("<td class=\"number\" title=\"1.02 ± 0.06\">1.02(6)</td>"));
    assert!(!html(&of_blocks(vec![table(None)])).contains("How to read numbers"));
}

#[test]
fn a_brief_is_short_and_has_a_plot() {
    let told = brief(&document());
    assert!(told.lines().count() <= 12 && told.lines().all(|line| line.chars().count() <= 96), "{told}");
    assert!(told.starts_with("A small report\nOf T[μ] and code.\n"), "{told}");
    assert!(told.contains("Error against L") && told.contains('┤') && told.contains("prompt length L"));
    assert_eq!(brief(&Document::default()), "");
}

#[test]
fn wide_tables_fit_a_terminal() {
    let columns = (0..14).map(|column| format!("heading {column}")).collect();
    let row = (0..14).map(|column| match column {
        1 => Cell::Text("a long text that goes on and on and on for more than one line of a terminal".into()),
        _ => Cell::Number { value: 1.0 / 3.0 + f64::from(column), error: Some(0.01) },
    });
    let rows = vec![row.collect::<Vec<_>>(); 2];
    let words = text(&of_blocks(vec![Block::Table(DataTable { columns, rows, ..DataTable::default() })]));
    assert!(words.lines().all(|line| line.chars().count() <= 100), "{words}");
    assert!(words.contains("13.333(10)") && words.contains("terminal"), "{words}");
}
