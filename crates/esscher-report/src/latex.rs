//! Tables and the data of drawings as LaTeX: a `tabular` with rules of the booktabs package.
//!
//! Formulas of prose pass as they are; every other text is escaped, so that no name becomes a command. Letters that pdfLaTeX
//! has no font for, such as Chinese or emoji, need LuaLaTeX or XeLaTeX.

use crate::document::{Cell, DataTable};
use crate::drawing::Drawing;
use crate::figure::Figure;
use crate::formula::SYMBOLS;
use crate::heat_map::{HeatMap, name};
use crate::literal::visible;
use crate::numbers::{datum, integer, number};
use crate::prose::{self, Span};
use crate::subscript::{Piece, pieces, unicode};

/// A table as a `tabular`. Needs `\usepackage{booktabs}`, `amsmath` for entries that are not numbers and `hyperref` for links.
pub fn table(table: &DataTable) -> String {
    let width = table.rows.iter().map(Vec::len).chain([table.columns.len()]).max().unwrap_or(0);
    let alignment: String = (0..width).map(|column| if is_text(table, column) { 'l' } else { 'r' }).collect();
    let headings: Vec<String> = (0..width)
        .map(|column| table.columns.get(column).map_or_else(String::new, |prose| self::prose(prose)))
        .collect();
    let rows = table.rows.iter().map(|row| (0..width).map(|column| cell(row.get(column))).collect());
    tabular(&prose::plain(&table.caption), &alignment, &headings, rows)
}

/// The data of a figure or a heat map as a `tabular`.
pub fn drawing<'a>(drawing: impl Into<Drawing<'a>>) -> String {
    match drawing.into() {
        Drawing::Figure(figure) => self::figure(figure),
        Drawing::Panels(panels) => self::figure(&panels.merged()),
        Drawing::HeatMap(map) => heat_map(map),
        Drawing::Tiles(tiles) => table(&tiles.table()),
    }
}

/// The numbers of a heat map as a `tabular` of its rows and columns.
pub fn heat_map(map: &HeatMap) -> String {
    let (rows, columns) = map.size();
    let headings: Vec<String> = [label(&map.y)]
        .into_iter()
        .chain((0..columns).map(|column| label(name(&map.columns, column))))
        .collect();
    let rows = (0..rows).map(|row| {
        let numbers = (0..columns).map(|column| {
            cell(map.cell(row, column).map(|value| Cell::Number { value, error: None }).as_ref())
        });
        [label(name(&map.rows, row))].into_iter().chain(numbers).collect()
    });
    // What the columns and the numbers are has no place in the table.
    let words = [prose::plain(&map.title), unicode(&map.x), unicode(&map.colour_label)];
    let words: Vec<String> = words.into_iter().filter(|words| !words.trim().is_empty()).collect();
    tabular(&words.join("; "), &format!("l{}", "r".repeat(columns)), &headings, rows)
}

/// The data of a figure as a `tabular`: one line for each point of each series.
pub fn figure(figure: &Figure) -> String {
    let points =
        || figure.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
    let has_intervals = points().any(|(_, point)| point.interval.is_some());
    let mut headings = vec!["series".to_string(), label(&figure.x.label), label(&figure.y.label)];
    if has_intervals {
        headings.extend(["low".to_string(), "high".to_string()]);
    }
    let written = |value: f64| format!("${}$", datum(value).latex());
    let rows = points().map(|(series, point)| {
        let mut row = vec![label(&figure.data_name(series)), written(point.x), written(point.y)];
        if has_intervals {
            let ends =
                point.interval.map_or_else(Default::default, |(low, high)| [written(low), written(high)]);
            row.extend(ends);
        }
        row
    });
    tabular(&prose::plain(&figure.title), if has_intervals { "lrrrr" } else { "lrr" }, &headings, rows)
}

fn tabular(
    comment: &str,
    alignment: &str,
    headings: &[String],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    // A comment ends with its line, so the caption must stay on one, whatever else may count as the end of a line.
    let comment = visible(comment).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::new();
    if !comment.is_empty() {
        out.push_str(&format!("% {comment}\n"));
    }
    out.push_str(&format!(
        "\\begin{{tabular}}{{{alignment}}}\n\\toprule\n{} \\\\\n\\midrule\n",
        headings.join(" & ")
    ));
    for row in rows {
        out.push_str(&row.join(" & "));
        out.push_str(" \\\\\n");
    }
    out.push_str("\\bottomrule\n\\end{tabular}\n");
    out
}

fn cell(cell: Option<&Cell>) -> String {
    match cell {
        Some(Cell::Text(text)) => prose(text),
        Some(Cell::Integer(value)) => format!("${}$", integer(*value).latex()),
        Some(Cell::Number { value, error }) => format!("${}$", number(*value, *error).latex()),
        Some(Cell::Missing) | None => "--".to_string(),
    }
}

/// A column of text is aligned to the left; one that holds a number, to the right.
pub(crate) fn is_text(table: &DataTable, column: usize) -> bool {
    !table.rows.iter().any(|row| matches!(row.get(column), Some(Cell::Integer(_) | Cell::Number { .. })))
}

fn prose(prose: &str) -> String {
    spans(&prose::spans(prose))
}

fn spans(pieces: &[Span]) -> String {
    pieces
        .iter()
        .map(|piece| match piece {
            Span::Text(text) => escaped(text),
            Span::Formula(source) => format!("${source}$"),
            Span::Code(code) => format!("\\texttt{{{}}}", escaped(code)),
            Span::Strong(inside) => format!("\\textbf{{{}}}", spans(inside)),
            Span::Link(words, target) if target.starts_with('#') => spans(words),
            Span::Link(words, target) => format!("\\href{{{}}}{{{}}}", address(target), spans(words)),
        })
        .collect()
}

/// An address inside of `\href`. Its signs are those that prose lets through, none of which is a backslash or a brace.
fn address(target: &str) -> String {
    ["%", "#", "&", "_"]
        .iter()
        .fold(target.replace('~', "%7E"), |text, sign| text.replace(sign, &format!("\\{sign}")))
}

/// The label of an axis or the name of a series, with its subscripts.
fn label(text: &str) -> String {
    let written = |piece: Piece| match piece.lowered {
        true => format!("\\textsubscript{{{}}}", escaped(&piece.text)),
        false => escaped(&piece.text),
    };
    pieces(text).into_iter().map(written).collect()
}

/// Plain text in LaTeX: special characters escaped, Greek and signs as formulas, neighbours in one formula.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut after_formula = false;
    let mut before = ' ';
    for character in visible(text).chars() {
        // Two of them would be set as a dash or a quotation mark.
        if character == before && "-,'".contains(character) {
            out.push_str("{}");
        }
        before = character;
        if let Some(source) = formula(character) {
            if after_formula {
                out.pop();
            } else {
                out.push('$');
            }
            out.push_str(&source);
            out.push('$');
            after_formula = true;
            continue;
        }
        after_formula = false;
        match character {
            '\\' => out.push_str("\\textbackslash{}"),
            '{' | '}' | '$' | '&' | '#' | '%' | '_' => {
                out.push('\\');
                out.push(character);
            }
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '`' => out.push_str("\\textasciigrave{}"),
            // After the end of a row they would be its options.
            '[' | '*' => out.push_str(&format!("{{{character}}}")),
            _ if character.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// The formula that writes a character, for those that the fonts of text lack.
fn formula(character: char) -> Option<String> {
    match character {
        '−' => Some("-".to_string()),
        '‖' => Some("\\Vert".to_string()),
        '⁰' | '¹' | '²' | '³' | '⁴'..='⁹' | '⁻' => {
            let digit =
                "⁰¹²³⁴⁵⁶⁷⁸⁹⁻".chars().zip("0123456789-".chars()).find(|(raised, _)| *raised == character);
            digit.map(|(_, digit)| format!("{{}}^{{{digit}}}"))
        }
        '₀'..='₉' => Some(format!("{{}}_{{{}}}", u32::from(character) - u32::from('₀'))),
        other => {
            SYMBOLS.iter().find(|(_, symbol)| *symbol == other).map(|(command, _)| format!("\\{command}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal;

    #[test]
    fn text_is_escaped_and_formulas_pass() {
        assert_eq!(
            prose(r"50 % of $x_1$ & a_b `f_g` **σ²**"),
            r"50 \% of $x_1$ \& a\_b \texttt{f\_g} \textbf{$\sigma{}^{2}$}"
        );
        assert_eq!(prose(r"\input{x}"), r"\textbackslash{}input\{x\}");
        assert_eq!(prose(&literal(r"$\input{x}$")), r"\$\textbackslash{}input\{x\}\$");
        assert_eq!(prose("[2pt] *--"), "{[}2pt] {*}-{}-");
    }

    #[test]
    fn labels_keep_their_subscripts() {
        assert_eq!(label("|θ_L| of a_run"), r"\textbar{}$\theta$\textsubscript{L}\textbar{} of a\_run");
    }

    #[test]
    fn a_caption_cannot_leave_its_comment() {
        for end in ["\n", "\r", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"] {
            let data = DataTable { caption: format!("one{end}\\input{{x}}"), ..DataTable::default() };
            let written = table(&data);
            assert!(written.starts_with("% one") && written.contains("\\input{x}\n\\begin"), "{written}");
            assert!(!written.contains(end) || end == "\n", "{end:?}");
        }
    }
}
