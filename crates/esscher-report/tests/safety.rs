//! No text and no number breaks an output: markup means itself, and every figure can be drawn.

use esscher_report::{
    Axis, Block, Card, Cell, Compared, DataTable, Document, Figure, HeatMap, Kind, Mark, Panel, Panels,
    Point, Scale, Section, Series, Tile, Tiles, Tone, Verdict, brief, compare, csv, html, latex, literal,
    pdf, png, svg, text,
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
        x: Axis::linear(words()),
        y: Axis::logarithmic(words()),
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
    let panels = Panels {
        id: words(),
        title: words(),
        caption: words(),
        x: Axis::linear(words()),
        y: Axis::linear(words()),
        panels: vec![Panel { title: words(), series: figure.series.clone() }; 2],
    };
    let tile = Tile { kind: 0, words: words(), detail: words(), target: words() };
    let tiles = Tiles {
        id: words(),
        title: words(),
        caption: words(),
        x: words(),
        y: words(),
        columns: vec![words(), words()],
        rows: vec![words()],
        kinds: vec![Kind { name: words(), tone: Tone::Bad }],
        cells: vec![vec![Some(tile.clone()), Some(Tile { kind: 7, ..tile })]],
    };
    let card = Card {
        section: words(),
        title: words(),
        verdict: Some(Verdict::Fails),
        number: words(),
        meaning: words(),
        picture: Some(figure.clone()),
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
            Block::Lead(words()),
            Block::Cards(vec![card.clone()]),
            Block::Panels(panels.clone()),
            Block::Tiles(tiles.clone()),
            Block::Folded {
                id: words(),
                title: words(),
                blocks: vec![Block::Prose(format!("[{}](https://example.org) {}", words(), words()))],
            },
        ],
    };
    Document {
        title: words(),
        summary: words(),
        sections: vec![section(), section()],
        provenance: vec![(words(), words())],
    }
}

/// Texts that are something to a language of the outputs, or hard to draw.
fn payloads() -> Vec<String> {
    let mut payloads: Vec<String> = [
        r"$\input{/etc/passwd}$",
        r"\input{/etc/passwd}",
        r"\immediate\write18{id}",
        r"\$x\$",
        r"\end{tabular}",
        r"\\ \hline",
        "Costs of $5 and $7 per token, 2**3 and 4**5",
        "`code`",
        "**strong**",
        "***",
        "$$x$$",
        "x_1, y_{2}, quasi_monte_carlo",
        "50 % & #1 ~ ^ {} }{",
        "^^M^^5c",
        "[2pt]",
        "*starred",
        "a -- b --- c, ,,d'' ``e''",
        "<script>zap()</script>",
        "</script><script>zap()</script>",
        "<!--<script>",
        "</title></style></svg>",
        "]]>",
        "&lt;b&gt; &amp; &#60;",
        "\" onload=\"zap()",
        "' onload='zap()",
        "javascript:zap()",
        "[words](https://zap.example)",
        "[words](#rate)",
        "](https://zap.example) [",
        "[words](javascript:zap())",
        "=cmd|' /C calc'!A1",
        "+1",
        "-1",
        "@x",
        "\tx",
        "\rx",
        "a,b;\"c\"\nd",
        "one\u{2028}two\u{2029}three\u{85}four\u{c}five",
        "\u{202e}desrever\u{202c} \u{2066}x\u{2069}",
        "\u{1b}[31mred\u{1b}]0;title\u{7}",
        "\u{9b}31m\u{0}\u{8}\u{7f}",
        "\u{feff}no\u{200b}width\u{ad}",
        "\u{fdd0}x\u{fdd0} \u{fdd3}1 \u{ffff}",
        "“quoted” ‘text’ «so»",
        "👩\u{200d}🔬 🎲",
        "e\u{301}a\u{308}\u{30a}",
        "שלום, 世界, مرحبا",
        " ",
    ]
    .map(str::to_string)
    .to_vec();
    payloads.extend(["x".repeat(10_000), "long words ".repeat(1000), "$_`*".repeat(2500)]);
    payloads
}

/// What readers see of a text: characters that steer are written out.
fn shown(payload: &str) -> String {
    let steers = |c: char| {
        !"\t\n\r".contains(c)
            && (c.is_control()
                || "\u{ad}\u{200b}\u{2028}\u{2029}\u{202c}\u{202e}\u{2066}\u{2069}\u{feff}\u{ffff}"
                    .contains(c))
    };
    let noncharacter = |c: char| if ('\u{fdd0}'..='\u{fdef}').contains(&c) { '\u{fffd}' } else { c };
    let write =
        |c: char| if steers(c) { c.escape_unicode().to_string() } else { noncharacter(c).to_string() };
    payload.chars().map(write).collect()
}

/// The content of the first element with this beginning, as a browser reads it.
fn content(page: &str, begin: &str, end: &str) -> String {
    let (_, rest) = page.split_once(begin).unwrap_or_else(|| panic!("no {begin}"));
    let (inside, _) = rest.split_once(end).unwrap();
    assert!(!inside.contains('<'), "{inside}");
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(inside.to_string(), |text, (entity, sign)| text.replace(entity, sign))
}

/// The fields of CSV by RFC 4180, line by line.
fn fields(csv: &str) -> Vec<Vec<String>> {
    let (mut lines, mut field, mut is_quoted) = (vec![vec![]], String::new(), false);
    let mut signs = csv.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '"' if is_quoted && signs.peek() == Some(&'"') => field.extend(signs.next()),
            '"' => is_quoted = !is_quoted,
            ',' | '\n' if !is_quoted => {
                lines.last_mut().unwrap().push(std::mem::take(&mut field));
                if sign == '\n' {
                    lines.push(vec![]);
                }
            }
            other => field.push(other),
        }
    }
    lines.pop();
    lines
}

/// LaTeX of plain text read back; panics at what is not plain text.
fn read_latex(source: &str) -> String {
    let words = [
        ("\\textbackslash{}", "\\"),
        ("\\textasciitilde{}", "~"),
        ("\\textasciicircum{}", "^"),
        ("\\textasciigrave{}", "`"),
        ("\\textless{}", "<"),
        ("\\textgreater{}", ">"),
        ("\\textbar{}", "|"),
        ("{[}", "["),
        ("{*}", "*"),
        ("{}", ""),
    ];
    let (mut out, mut rest) = (String::new(), source);
    while let Some(first) = rest.chars().next() {
        if let Some((command, sign)) = words.iter().find(|(command, _)| rest.starts_with(command)) {
            out.push_str(sign);
            rest = &rest[command.len()..];
            continue;
        }
        let escaped = rest.strip_prefix('\\').and_then(|after| after.chars().next());
        let sign = escaped.unwrap_or(first);
        assert!("{}$&#%_".contains(sign) == escaped.is_some(), "raw LaTeX at {rest:.40}");
        assert!(!sign.is_control() && !"\\~^".contains(sign), "raw LaTeX at {rest:.40}");
        out.push(sign);
        rest = &rest[sign.len_utf8() + usize::from(escaped.is_some())..];
    }
    out
}

#[test]
fn literal_text_comes_back_from_every_output() {
    for payload in payloads() {
        let began = std::time::Instant::now();
        let (document, shown) = (document_of(&literal(&payload)), shown(&payload));
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");

        let page = html(&document);
        for (begin, end) in [("<title>", "</title>"), ("<h1>", "</h1>"), ("<dd>", "</dd>"), ("<p>", "</p>")] {
            assert_eq!(content(&page, begin, end), shown, "{payload:.40}");
        }
        let (body, data) = page.split_once("<script type=\"application/json\">").unwrap();
        assert!(
            !body.contains("<script")
                && !body.contains("\" onload=")
                && !body.contains("<code>")
                && !body.contains("<strong>")
        );
        assert_eq!(body.matches("<span class=\"formula").count(), 0, "{payload:.40}");
        // Of links there are those to sections, and the one of the document itself.
        let outside = body.split("<a href=\"").skip(1).filter(|link| !link.starts_with('#'));
        assert!(
            outside.clone().all(|link| link.starts_with("https://example.org\"")) && outside.count() <= 2,
            "{payload:.40}"
        );
        let data: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
        assert!(!data.to_string().contains(['\u{7f}', '\u{200b}', '\u{202e}', '\u{2066}']), "{payload:.40}");
        assert_eq!(data["figures"][0]["series"][0]["name"], serde_json::json!([shown]), "{payload:.40}");

        let terminal = text(&document);
        assert!(
            !terminal
                .chars()
                .any(|sign| sign.is_control() && sign != '\n' || "\u{202e}\u{2028}".contains(sign))
        );
        assert!(terminal.lines().all(|line| line.chars().count() <= 100), "{payload:.40}");
        let words = |text: &str| text.split_whitespace().collect::<String>();
        assert!(words(&terminal).starts_with(&words(&shown)), "{payload:.40}");

        assert!(!brief(&document).chars().any(|sign| sign.is_control() && sign != '\n'));
        assert!(
            brief(&document).lines().count() <= 14
                && brief(&document).lines().all(|line| line.chars().count() <= 100)
        );

        for block in &document.sections[0].blocks {
            let (csv, tex) = match (block, block.drawing()) {
                (_, Some(drawing)) => {
                    let drawn = svg(drawing);
                    assert!(!drawn.contains("<script") && drawn.len() < 200_000);
                    assert!(content(&drawn, "<title>", "</title>") == shown || shown.trim().is_empty());
                    assert!(pdf(drawing).is_ok() && png(drawing).is_ok());
                    (csv::drawing(drawing), latex::drawing(drawing))
                }
                (Block::Table(table), _) => (csv::table(table), latex::table(table)),
                _ => continue,
            };
            // Data of panels names the panel and the series.
            let shown = match block {
                Block::Panels(_) => format!("{shown}: {shown}"),
                _ => shown.clone(),
            };
            // In data a quote stands before what a spreadsheet would compute.
            let is_formula = shown.starts_with(['=', '+', '-', '@', '\t', '\r']);
            let kept = if is_formula { format!("'{shown}") } else { shown.clone() };
            let read = fields(&csv);
            if matches!(block, Block::Figure(_)) {
                assert_eq!(read[1], [kept.as_str(), "1", "2", "-1", "5"], "{payload:.40}");
            } else if !kept.trim().is_empty() {
                assert_eq!(read[1][0], kept);
            }
            let (comment, tabular) = tex.split_once("\\begin{tabular}").unwrap();
            assert!(
                comment.lines().count() <= 1
                    && !comment.contains(['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'])
            );
            let rows = tabular.split_once("\\midrule\n").unwrap().1.split_once("\\bottomrule").unwrap().0;
            let first = rows.split(" & ").next().unwrap().split(" \\\\\n").next().unwrap();
            assert_eq!(one_line(&read_latex(first)), one_line(&shown), "{payload:.40}");
        }
        let run = |name: &str, words: &str| Compared {
            name: name.into(),
            settings: vec![(payload.clone(), words.into())],
            document: document_of(words),
        };
        let both = compare(&[run(&payload, "quiet"), run("other", "other")]);
        assert!(!html(&both).contains("<span class=\"formula\">"));
        // No text takes minutes.
        assert!(began.elapsed().as_secs() < 30, "{payload:.40}");
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
        let rendered = text(&document) + &brief(&document);
        prop_assert!(!rendered.chars().any(|c| c.is_control() && c != '\n'));
    }

    #[test]
    fn every_number_can_be_drawn_and_written(
        points in prop::collection::vec((any::<f64>(), any::<f64>(), prop::option::of((any::<f64>(), any::<f64>()))), 0..20),
        logarithmic in any::<(bool, bool)>(),
    ) {
        let scale = |logarithmic| if logarithmic { Scale::Logarithmic } else { Scale::Linear };
        let axis = |logarithmic| Axis { label: "a".into(), scale: scale(logarithmic), includes: None };
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
        let panels = Panels {
            x: figure.x.clone(),
            y: figure.y.clone(),
            panels: vec![Panel { title: "p".into(), series: figure.series.clone() }; 3],
            ..Panels::default()
        };
        let drawing = svg(&panels);
        prop_assert!(!drawing.contains("NaN") && !drawing.contains("inf"));
        let card = Card { picture: Some(figure.clone()), ..Card::default() };
        let blocks = vec![Block::Figure(figure), Block::HeatMap(map), Block::Panels(panels), Block::Cards(vec![card])];
        let section = Section { blocks, ..Section::default() };
        let document = Document { sections: vec![section], ..Document::default() };
        let page = html(&document);
        prop_assert!(!page.split("<script").next().is_some_and(|body| body.contains(" d=\"MNaN") || body.contains("=\"NaN")));
        brief(&document);
    }
}
