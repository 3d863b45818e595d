//! A gallery of what a report can hold, to look at: `cargo run --release --example gallery -- FOLDER`.

use std::error::Error;
use std::fs;
use std::path::Path;

use esscher_report::{
    Axis, Block, Card, Cell, DataTable, Document, Figure, HeatMap, Kind, Mark, Panel, Panels, Point, Scale,
    Section, Series, Tile, Tiles, Tone, Verdict, brief, html, pdf, png, svg, text,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name the folder to write into: gallery FOLDER")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let document = document();
    fs::write(folder.join("report.html"), html(&document))?;
    fs::write(folder.join("report.txt"), text(&document))?;
    fs::write(folder.join("brief.txt"), brief(&document))?;
    let blocks =
        document.sections.iter().filter(|section| section.id != "twin").flat_map(|section| &section.blocks);
    for block in blocks {
        for drawing in block.drawings() {
            let file = |ending: &str| folder.join(format!("{}.{ending}", drawing.id()));
            fs::write(file("svg"), svg(drawing))?;
            fs::write(file("png"), png(drawing)?)?;
            fs::write(file("pdf"), pdf(drawing)?)?;
            fs::write(file("csv"), esscher_report::csv::drawing(drawing))?;
            fs::write(file("tex"), esscher_report::latex::drawing(drawing))?;
        }
        if let Block::Table(table) = block {
            fs::write(folder.join(format!("{}.csv", table.id)), esscher_report::csv::table(table))?;
            fs::write(folder.join(format!("{}.tex", table.id)), esscher_report::latex::table(table))?;
        }
    }
    Ok(())
}

fn document() -> Document {
    Document {
        title: "A gallery of attention: rates, risks and what cannot be measured".into(),
        summary: r"Every kind of block that a report can hold, with invented numbers. The operator is
            $T[\mu](z) = V\,\nabla\Lambda_\mu(Uz)$; run `esscher reproduce` for real ones."
            .into(),
        sections: vec![
            glance(),
            rates(),
            risks(),
            small_multiples(),
            direct_labels(),
            prompts(),
            twin(0.5),
            twin(2.0),
            verdicts(),
            heads(),
            corners(),
        ],
        provenance: [
            ("program", "esscher 0.2.0"),
            ("commit", "0000000000000000000000000000000000000000"),
            ("specification", "sha-256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("instruction set", "AVX-512"),
            ("started", "a day in November, took 3 min 12 s"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .to_vec(),
    }
}

/// The whole at a glance.
fn glance() -> Section {
    let card = |section: &str, title: &str, verdict, number: &str, meaning: &str, picture| Card {
        section: section.into(),
        title: title.into(),
        verdict,
        number: number.into(),
        meaning: meaning.into(),
        picture,
    };
    let risk = risks().blocks.into_iter().find_map(|block| match block {
        Block::Figure(figure) => Some(figure),
        _ => None,
    });
    let cards = vec![
        card(
            "rates",
            r"Prompts concentrate at rate $L^{-1/2}$",
            Some(Verdict::Holds),
            "−0.5003(12)",
            "slope of the error, expected −1/2",
            Some(rate_figure()),
        ),
        card(
            "risks",
            "Training reaches the floor of the risk",
            Some(Verdict::Fails),
            "0.35",
            "risk that is left at L = 100, floor 0.1",
            risk,
        ),
        card(
            "labels",
            "Softmax is linear on Gaussian tokens, and bends on all others that were tried",
            Some(Verdict::Holds),
            "14 digits",
            "of the output agree with a line",
            Some(labelled_figure()),
        ),
        card(
            "verdicts",
            "Heads that can be replaced",
            Some(Verdict::NotMeasurable),
            "206 of 270",
            "heads accepted",
            None,
        ),
        card(
            "twin",
            "A card without a verdict, with a [link](https://arxiv.org) that is words",
            None,
            "$L = 10^{12}$",
            "costs what $L = 10$ costs",
            None,
        ),
    ];
    Section::new("glance", "At a glance", vec![Block::Cards(cards)])
}

fn labelled_figure() -> Figure {
    let lengths = || (0..=60).map(|k| f64::from(k) * 0.05);
    let laws = [
        "Gaussian (exact)",
        "two Gaussians",
        "signs",
        "uniform on a cube",
        "sphere",
        "Laplace",
        "uneven Gaussian",
    ];
    let mut series: Vec<Series> = laws
        .iter()
        .enumerate()
        .map(|(colour, law)| Series {
            name: (*law).into(),
            mark: Mark::Line,
            colour: if colour == 0 { 7 } else { colour - 1 },
            points: lengths()
                .map(|x| Point::new(x, 1.0 + 0.12 * (colour as f64 - 2.6).powi(3) / 12.0 * x * x))
                .collect(),
        })
        .collect();
    series.push(Series {
        name: "bound".into(),
        mark: Mark::Dashed,
        colour: 0,
        points: lengths().map(|x| Point::new(x, 1.0 + 0.3 * x)).collect(),
    });
    series.push(Series {
        name: String::new(),
        mark: Mark::Dashed,
        colour: 1,
        points: lengths().map(|x| Point::new(x, 1.0 - 0.2 * x)).collect(),
    });
    Figure {
        id: "labels".into(),
        title: "On Gaussian tokens the output is a line to 14 digits; on every other law that was tried it bends, by up to 18 % at three standard deviations".into(),
        caption: "Output divided by the linear map. The axis of the output begins at 0, and all names stand where their lines end.".into(),
        x: Axis::linear("size of the query (standard deviations)"),
        y: Axis::from_zero("output over linear map"),
        series,
    }
}

/// Names where lines end, few positions as ticks, and what is folded.
fn direct_labels() -> Section {
    let few = [10.0, 40.0, 100.0, 400.0];
    let methods = [("softmax", 0.153, 0), ("linear", 0.162, 1), ("least squares", 0.148, 2)];
    let experiment = methods.map(|(name, floor, colour)| Series {
        name: name.into(),
        mark: Mark::Dots,
        colour,
        points: few.map(|x| Point::with_error(x, floor + 1.2 / x, 0.004)).to_vec(),
    });
    Section {
        id: "labels".into(),
        title: "Names stand where lines end".into(),
        verdict: Some(Verdict::Holds),
        blocks: vec![
            Block::Lead(r"On Gaussian tokens softmax attention is a linear map to 14 digits; on four other laws it bends by **18 % or more**. See [Vaswani and others](https://arxiv.org/abs/1706.03762), or [how it was measured](#labels-method) below.".into()),
            Block::Figure(labelled_figure()),
            Block::Figure(Figure {
                id: "experiment".into(),
                title: "The only four lengths that were tried are the ticks".into(),
                x: Axis::logarithmic("prompt length L (tokens)"),
                y: Axis::logarithmic("validation loss"),
                series: experiment.to_vec(),
                ..Figure::default()
            }),
            Block::Folded {
                id: "labels-method".into(),
                title: "How it was measured, and what would refute it".into(),
                blocks: vec![
                    Block::Facts(vec![
                        ("Criterion".into(), "The output agrees with the map to $10^{-12}$.".into()),
                        ("Refuted if".into(), "one law but the Gaussian agrees as well.".into()),
                    ]),
                    Block::Figure(Figure { id: "inner".into(), title: "A figure that is drawn when it is unfolded".into(), ..labelled_figure() }),
                    Block::Table(rate_table()),
                ],
            },
        ],
    }
}

/// Small multiples with one legend.
fn small_multiples() -> Section {
    let lengths = || (0..=24).map(|k| 10f64.powf(f64::from(k) / 4.0));
    let panel = |title: &str, shift: f64| Panel {
        title: title.into(),
        series: ["σ = 0.5", "σ = 1", "σ = 2", "σ = 4"]
            .iter()
            .enumerate()
            .flat_map(|(colour, name)| {
                let height = shift * (1.0 + colour as f64).powi(2);
                let power = -0.5 / (1.0 + 0.2 * colour as f64);
                let dots = lengths()
                    .step_by(4)
                    .map(|x| Point::with_error(x, height * x.powf(power), 0.2 * height * x.powf(power)));
                let bound = lengths().map(|x| Point::new(x, 3.0 * height * x.powf(power)));
                [
                    Series { name: (*name).into(), mark: Mark::Dots, colour, points: dots.collect() },
                    Series { name: "bound".into(), mark: Mark::Dashed, colour, points: bound.collect() },
                ]
            })
            .collect(),
    };
    let panels = |id: &str, count: usize| Panels {
        id: id.into(),
        title: format!("The error falls at the proved rate for each of {count} laws"),
        caption: "Dots with bars: mean and standard error. Dashed: the bound.".into(),
        x: Axis::logarithmic("prompt length L"),
        y: Axis::logarithmic("mean squared error of the output"),
        panels: [
            ("normal", 0.01),
            ("uneven normal", 0.03),
            ("signs", 0.003),
            ("cube", 0.02),
            ("sphere", 0.005),
            ("μ_L of two normals", 0.1),
            ("Laplace", 0.3),
        ][..count]
            .iter()
            .map(|(title, shift)| panel(title, *shift))
            .collect(),
    };
    Section::new(
        "panels",
        "Small multiples share their axes and one legend",
        vec![
            Block::Panels(panels("panels-6", 6)),
            Block::Panels(panels("panels-2", 2)),
            Block::Panels(panels("panels-4", 4)),
        ],
    )
}

/// Tiles: of a small language model with words, and as many as there can be.
fn verdicts() -> Section {
    let kinds = vec![
        Kind { name: "accepted".into(), tone: Tone::Good },
        Kind { name: "not decided".into(), tone: Tone::Open },
        Kind { name: "refused".into(), tone: Tone::Bad },
    ];
    let words = ["sink", "local", "gauss", "linear", "", "tilted"];
    let tiles = |id: &str, rows: usize, columns: usize| Tiles {
        id: id.into(),
        title: format!("Most of {} heads can be replaced, and the last layers cannot", rows * columns),
        caption: "Pointing at a tile tells more; a click leads to it.".into(),
        x: "head".into(),
        y: "layer".into(),
        columns: (0..columns).map(|head| head.to_string()).collect(),
        rows: (0..rows).map(|layer| layer.to_string()).collect(),
        kinds: kinds.clone(),
        cells: (0..rows)
            .map(|row| {
                (0..columns)
                    .map(|column| {
                        let place = row * 7 + column * 5;
                        let kind = if row + 4 > rows && column % 3 > 0 {
                            2
                        } else if place % 5 == 3 {
                            1
                        } else {
                            0
                        };
                        (place % 41 != 40).then(|| Tile {
                            kind,
                            words: if kind == 2 { "no".into() } else { words[place % words.len()].into() },
                            detail: format!("error 0.0{place}, bound 0.05"),
                            target: if row == 0 { "labels-method".into() } else { String::new() },
                        })
                    })
                    .collect()
            })
            .collect(),
    };
    Section::new(
        "verdicts",
        "A map of verdicts",
        vec![
            Block::Tiles(tiles("tiles-30-9", 30, 9)),
            Block::Tiles(tiles("tiles-6-6", 6, 6)),
            Block::Tiles(tiles("tiles-32-32", 32, 32)),
        ],
    )
}

/// Heat maps: of a small language model, of a few heads with gaps, and as large as they come.
fn heads() -> Section {
    let map = |id: &str, rows: usize, columns: usize, scale, cell: fn(f64, f64) -> Option<f64>| HeatMap {
        id: id.into(),
        title: format!("{rows} layers of {columns} heads"),
        caption: r"Relative error of the replacement $T[\hat\mu]$; invented numbers.".into(),
        x: "head".into(),
        y: "layer".into(),
        columns: (0..columns).map(|head| head.to_string()).collect(),
        rows: (0..rows).map(|layer| layer.to_string()).collect(),
        cells: (0..rows)
            .map(|row| (0..columns).map(|column| cell(row as f64, column as f64)).collect())
            .collect(),
        colour_label: "relative error ε_L".into(),
        scale,
        threshold: Some(if scale == Scale::Linear { 0.2 } else { 1e-3 }),
    };
    let waves = |row: f64, column: f64| Some(0.5 + 0.5 * (row * 0.35).sin() * (column * 0.8 + 1.0).cos());
    let gaps = |row: f64, column: f64| match (row as usize, column as usize) {
        (1, 2) | (4, 4) => None,
        (3, 0) => Some(0.0),
        _ => Some(10f64.powf(-4.5 + 0.5 * row + 0.3 * column)),
    };
    Section {
        id: "heads".into(),
        title: "Layers and heads".into(),
        verdict: None,
        blocks: vec![
            Block::HeatMap(map("heat-30-9", 30, 9, Scale::Linear, waves)),
            Block::HeatMap(map("heat-6-6", 6, 6, Scale::Logarithmic, gaps)),
            Block::HeatMap(map("heat-48-64", 48, 64, Scale::Linear, waves)),
            Block::HeatMap(HeatMap {
                id: "heat-empty".into(),
                title: "Nothing".into(),
                ..HeatMap::default()
            }),
        ],
    }
}

fn rates() -> Section {
    Section {
        id: "rates".into(),
        title: r"Finite prompts concentrate at rate $L^{-1/2}$".into(),
        verdict: Some(Verdict::Holds),
        blocks: vec![
            Block::Facts(vec![
                ("Statement".into(), r"For sub-Gaussian tokens, $\mathbb{E}\lVert T[\mu_L](z) - T[\mu](z)\rVert \le C\,L^{-1/2}$ for all $L \ge L_0$.".into()),
                ("Criterion".into(), "The fitted slope lies within **two standard errors** of $-1/2$.".into()),
                ("Source".into(), "Theorem 3.2 of the paper, with a < b & c.".into()),
            ]),
            Block::Prose(r"The error of a prompt of length $L$ is drawn with its standard error; dashed lines are the bound. Code such as `esscher run concentration.toml` stays code.".into()),
            Block::Formula(r"\varepsilon(L) = \Bigl(\mathbb{E}\,\bigl\lVert T[\mu_L](z) - T[\mu](z)\bigr\rVert^2\Bigr)^{1/2} = \frac{\sigma\, e^{\tau^2/2}}{\sqrt{L}}\,\bigl(1 + O(L^{-1})\bigr)".into()),
            Block::Figure(rate_figure()),
            Block::Table(rate_table()),
        ],
    }
}

fn rate_figure() -> Figure {
    let lengths = || (0..=12).map(|k| 10f64.powi(k));
    let dense = || (0..=120).map(|k| 10f64.powf(f64::from(k) / 10.0));
    let mut series = Vec::new();
    for (colour, (tau, power)) in [(0.5, -0.5), (1.0, -0.8), (2.0, -1.1)].into_iter().enumerate() {
        let height = 0.3 * 10f64.powf(-(colour as f64) * 0.3);
        series.push(Series {
            name: format!("measured, τ = {tau}"),
            mark: Mark::Dots,
            colour,
            points: lengths()
                .map(|length| {
                    let y = height * length.powf(power);
                    // The last one is consistent with zero: its bar leaves the axes.
                    let low = if length > 1e11 { -0.3 * y } else { 0.55 * y };
                    Point { x: length, y, interval: Some((low, 1.8 * y)) }
                })
                .collect(),
        });
        series.push(Series {
            name: format!("bound, τ = {tau}"),
            mark: Mark::Dashed,
            colour,
            points: dense().map(|length| Point::new(length, 2.5 * height * length.powf(power))).collect(),
        });
    }
    series.push(Series {
        name: "mixture, σ² = 0.1".into(),
        mark: Mark::Line,
        colour: 3,
        points: dense()
            .map(|length| {
                let y = 0.05 * length.powf(-0.25) * (1.0 + 0.3 * length.ln().sin());
                Point { x: length, y, interval: Some((0.4 * y, 2.2 * y)) }
            })
            .collect(),
    });
    Figure {
        id: "rate".into(),
        title: r"Error of the softmax head against prompt length $L$".into(),
        caption: r"Dots with bars: mean and $95\,\%$ interval over $10^4$ prompts. Dashed: the bound. Band: interval of the mixture.".into(),
        x: Axis::logarithmic("prompt length L (tokens)"),
        y: Axis::logarithmic("error ε = ‖T[μ_L] − T[μ]‖"),
        series,
    }
}

fn rate_table() -> DataTable {
    let number = |value, error| Cell::Number { value, error };
    DataTable {
        id: "slopes".into(),
        caption: r"Fitted slopes and constants for each temperature $\tau$".into(),
        columns: ["law", r"$\tau$", "prompts", "slope", r"constant $C$", "error at $L = 10^{12}$", "comment"]
            .map(String::from)
            .to_vec(),
        rows: vec![
            vec![
                Cell::Text("Gaussian".into()),
                number(0.5, None),
                Cell::Integer(10_000),
                number(-0.5003, Some(0.0012)),
                number(0.30012, Some(1e-12)),
                number(3.0012e-7, Some(2.1e-9)),
                Cell::Text("exact".into()),
            ],
            vec![
                Cell::Text("Rademacher".into()),
                number(1.0, None),
                Cell::Integer(1_000_000),
                number(-0.4987, Some(0.0031)),
                number(0.15, Some(0.02)),
                number(1.5e-7, Some(4e-8)),
                Cell::Text("$d = 16$".into()),
            ],
            vec![
                Cell::Text("mixture of two".into()),
                number(2.0, None),
                Cell::Integer(1_048_576),
                Cell::Missing,
                number(12345.678, Some(3.2)),
                number(2e-9, Some(7e-9)),
                Cell::Text("slope **not fitted**".into()),
            ],
        ],
    }
}

fn risks() -> Section {
    let flow = |rate: f64, floor: f64| move |time: f64| floor + (1.0 - floor) * (-rate * time).exp();
    let times = || (0..=200).map(|k| f64::from(k) * 0.05);
    let mut series = Vec::new();
    for (colour, (length, rate, floor)) in
        [(100, 0.4, 0.35), (1000, 0.7, 0.18), (10_000, 0.9, 0.1)].into_iter().enumerate()
    {
        let risk = flow(rate, floor);
        series.push(Series {
            name: format!("gradient flow, L = {length}, started from the origin with the step of the paper"),
            mark: Mark::Line,
            colour,
            points: times().map(|time| Point::with_error(time, risk(time), 0.02)).collect(),
        });
        series.push(Series {
            name: format!("floor, L = {length}"),
            mark: Mark::Dashed,
            colour,
            points: vec![Point::new(0.0, floor), Point::new(10.0, floor)],
        });
    }
    Section {
        id: "risks".into(),
        title: "Training reaches the floor of the risk for every prompt length, and this heading is long enough to wrap".into(),
        verdict: Some(Verdict::Fails),
        blocks: vec![
            Block::Prose("Linear axes, and names that are too long to stand beside the figure.".into()),
            Block::Figure(Figure {
                id: "risk".into(),
                title: "Risk along the flow".into(),
                caption: "Bands: standard error.".into(),
                x: Axis::linear("training time t"),
                y: Axis::linear("risk R(t)"),
                series,
            }),
        ],
    }
}

/// Legends whose entries stand for several series, subscripts, and a long table with long headings.
fn prompts() -> Section {
    let laws = ["normal", "two normals", "signs", "cube", "sphere", "normal (control)"];
    let sizes = [1.0, 1.5, 2.0];
    let lengths = || (2..=12).map(|k| 10f64.powf(f64::from(k) / 2.0));
    let mut series = Vec::new();
    let mut rows = Vec::new();
    for (law, size, colour) in
        laws.iter().enumerate().flat_map(|(colour, law)| sizes.map(|size| (law, size, colour)))
    {
        let height = 3f64.powf(colour as f64);
        for prompt in 0..3 {
            let wave = |length: f64| height * (1.0 + 0.4 * (f64::from(prompt) + length.ln() * size).sin());
            series.push(Series {
                name: format!("{law}, σ = {size}: prompts"),
                mark: Mark::Line,
                colour,
                points: lengths()
                    .map(|length| Point::new(length, size * wave(length) / length.sqrt()))
                    .collect(),
            });
        }
        series.push(Series {
            name: format!("{law}, σ = {size}: bound"),
            mark: Mark::Dashed,
            colour,
            points: lengths().map(|length| Point::new(length, 2.0 * height * size / length.sqrt())).collect(),
        });
        rows.push(vec![
            Cell::Text("output".into()),
            Cell::Text((*law).into()),
            Cell::Number { value: size, error: None },
            Cell::Text("quasi-monte-carlo".into()),
            Cell::Number { value: 0.264896 * size, error: None },
            Cell::Number { value: 0.190725 / size, error: None },
            Cell::Integer(1_000_000_000_000),
            Cell::Number { value: 0.3255 * size, error: Some(0.0012) },
        ]);
    }
    let columns = [
        "quantity",
        "law",
        r"$\sigma$",
        "class",
        r"$c_1$ from $L \le 100$",
        "largest error over bound beyond",
        "longest $L$",
        "slope there, times the squared parameter",
    ];
    let columns = columns.map(String::from).to_vec();
    let short = DataTable {
        id: "prompts-short".into(),
        caption: "Long headings".into(),
        columns: columns.clone(),
        rows: rows[..4].to_vec(),
    };
    let mut wider = short.clone();
    wider.id = "prompts-wide".into();
    wider.caption = "More columns than a page can hold".into();
    wider.columns.extend(columns.clone());
    for row in &mut wider.rows {
        let again = row.clone();
        row.extend(again);
    }
    let unnamed = |height: f64, name: &str| Series {
        name: name.into(),
        mark: Mark::Line,
        colour: 0,
        points: lengths().map(|length| Point::new(length, height / length)).collect(),
    };
    Section {
        id: "prompts".into(),
        title: "Many prompts, one entry for each law".into(),
        verdict: Some(Verdict::Holds),
        blocks: vec![
            Block::Figure(Figure {
                id: "prompts".into(),
                title: "Distance from the infinite prompt".into(),
                caption: "Each line is one prompt; a click in the legend shows all prompts of a law.".into(),
                x: Axis::logarithmic("prompt length L of μ_L"),
                y: Axis::logarithmic("distance |T[μ_L] − T[μ_∞]| for μ_{in context}"),
                series,
            }),
            Block::Figure(Figure {
                id: "subscripts".into(),
                title: "Subscripts, and series without a name".into(),
                x: Axis::logarithmic("t_0 ≤ t"),
                y: Axis::logarithmic("|θ_L(t) − θ_∞(t)|²"),
                series: vec![
                    unnamed(1.0, "|θ_L − θ_∞|, x_{in}, a_snake_case_name"),
                    unnamed(2.0, ""),
                    unnamed(3.0, ""),
                ],
                ..Figure::default()
            }),
            Block::Table(DataTable {
                id: "prompts".into(),
                caption: r"Measured errors against the bound with $c_2 = 1/2$; $\sigma$ is the sub-Gaussian parameter.".into(),
                columns,
                rows,
            }),
            Block::Table(short),
            Block::Table(wider),
        ],
    }
}

/// A section that shares all its ids with another.
fn twin(height: f64) -> Section {
    let points = (1..=9).map(|k| Point::new(f64::from(k), height * f64::from(k))).collect();
    let series = Series { name: format!("slope {height}"), mark: Mark::Line, colour: 0, points };
    let rows = vec![vec![Cell::Number { value: height, error: None }]];
    Section {
        id: "twin".into(),
        title: format!("A line of slope {height}"),
        verdict: None,
        blocks: vec![
            Block::Figure(Figure {
                id: "twin".into(),
                title: "The line".into(),
                series: vec![series],
                ..Figure::default()
            }),
            Block::Table(DataTable {
                id: "twin".into(),
                caption: "Its slope".into(),
                columns: vec!["slope".into()],
                rows,
            }),
        ],
    }
}

fn corners() -> Section {
    let series = |name: &str, mark, colour, points: Vec<(f64, f64)>| Series {
        name: name.into(),
        mark,
        colour,
        points: points.into_iter().map(|(x, y)| Point::new(x, y)).collect(),
    };
    let axis = |label: &str, scale| Axis { label: label.into(), scale, includes: None };
    let cloud = (0..6000)
        .map(|k| f64::from(k) / 6000.0)
        .map(|t| (t, (40.0 * t).sin() * t + 0.1 * (9973.0 * t).sin()));
    let gaps =
        vec![(1.0, 1e-2), (10.0, 1e-3), (100.0, -1.0), (1e3, f64::NAN), (1e4, 1e-5), (1e5, 2e-6), (0.0, 1.0)];
    let shapes = (0..8).map(|colour| {
        series(
            &format!("shape {colour}"),
            Mark::Dots,
            colour,
            (0..5).map(|k| (f64::from(k), 1e6 * (colour as f64 + f64::from(k)))).collect(),
        )
    });
    let many = (0..30).map(|k| {
        let mark = [Mark::Line, Mark::Dashed, Mark::Dots][k / 8 % 3];
        series(
            &format!("head {k}"),
            mark,
            k,
            (1..9).map(|x| (f64::from(x) * 1e3, -f64::from(x) * 0.001 * k as f64)).collect(),
        )
    });
    Section {
        id: "corners".into(),
        title: "Corner cases".into(),
        verdict: Some(Verdict::NotMeasurable),
        blocks: vec![
            Block::Prose(r"A formula that cannot be set: $\frac{a}{$ and markup that means itself: </script><b>bold</b> &amp;.".into()),
            Block::Figure(Figure {
                id: "gaps".into(),
                title: "Points that a logarithmic axis cannot hold".into(),
                x: axis("x", Scale::Logarithmic),
                y: axis("y", Scale::Logarithmic),
                series: vec![series("with gaps", Mark::Line, 0, gaps), series("empty", Mark::Dots, 1, vec![])],
                ..Figure::default()
            }),
            Block::Figure(Figure {
                id: "cloud".into(),
                title: "Thousands of points".into(),
                x: axis("position", Scale::Linear),
                y: axis("height", Scale::Linear),
                series: vec![series("line of 6000 points", Mark::Line, 5, cloud.collect())],
                ..Figure::default()
            }),
            Block::Figure(Figure {
                id: "shapes".into(),
                title: "Every shape and colour".into(),
                x: axis("step", Scale::Linear),
                y: axis("tokens seen", Scale::Linear),
                series: shapes.collect(),
                ..Figure::default()
            }),
            Block::Figure(Figure {
                id: "narrow".into(),
                title: "Less than a decade".into(),
                x: axis("temperature τ", Scale::Logarithmic),
                y: axis("bias κ", Scale::Logarithmic),
                series: vec![series("bias", Mark::Dots, 2, (2..9).map(|k| (f64::from(k), 3e-5 / f64::from(k).sqrt())).collect())],
                ..Figure::default()
            }),
            Block::Figure(Figure {
                id: "many".into(),
                title: "Many series and long labels".into(),
                x: axis("a label of the horizontal axis that is so long that it has to be broken into more than one line, with unit (tokens per second)", Scale::Logarithmic),
                y: axis("a label of the vertical axis that is too long for its axis as well (nats)", Scale::Linear),
                series: many.collect(),
                ..Figure::default()
            }),
            Block::Figure(Figure { id: "empty".into(), title: "An empty figure".into(), ..Figure::default() }),
            Block::Table(DataTable { id: "none".into(), caption: "An empty table".into(), columns: vec!["nothing".into()], rows: vec![] }),
        ],
    }
}
