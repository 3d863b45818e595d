//! Curves over two axes as a Vega-Lite specification.

use serde_json::{Value, json};

use crate::figure::{Figure, Mark, Scale};
use crate::frame::{Frame, Range, frame};
use crate::legend::entries;
use crate::palette::{COUNT, SHAPES};
use crate::panels::Panels;
use crate::ticks::{Tick, axis_ticks};

use super::{SCHEMA, by_turns};

/// Labels of an axis: as many as stand side by side on a telephone.
const X_TICKS: usize = 7;
/// A label of the vertical axis takes this much of its height, in pixels.
const Y_SPACING: usize = 38;
/// Of a plot, in pixels.
const HEIGHT: usize = 360;
const PANEL_HEIGHT: usize = 210;

/// The specification of a figure and its points.
///
/// `specification` reads rows with the fields `series`, `entry`, `colour`, `mark`, `segment`, `run`, `order`, `x`, `y`,
/// `low` and `high`; the script of the page makes them from the compact `series`: for each, its place in the legend and
/// segments of `[x, y]` or `[x, y, low, high]`, with `null` for an infinite end. Names and labels are lists of texts
/// that stand on the line and below it by turns. The titles of the axes are not drawn: Vega cannot lower letters.
pub(super) fn curves(figure: &Figure) -> Value {
    let frame = frame(figure);
    json!({
        "specification": specification(&frame, HEIGHT),
        "series": series(figure, &frame),
        "labels": [by_turns(&figure.x.label), by_turns(&figure.y.label)]
    })
}

/// The same for panels: one `specification` for all, and the `series` of each in `panels`.
pub(super) fn panels(panels: &Panels) -> Value {
    let all = panels.overlaid();
    let frame = frame(&all);
    let mut series = series(&all, &frame).into_iter();
    let each: Vec<Vec<Value>> =
        panels.panels.iter().map(|panel| series.by_ref().take(panel.series.len()).collect()).collect();
    json!({
        "specification": specification(&frame, PANEL_HEIGHT),
        "panels": each,
        "labels": [by_turns(&all.x.label), by_turns(&all.y.label)]
    })
}

fn series(figure: &Figure, frame: &Frame) -> Vec<Value> {
    let (_, places) = entries(figure, frame);
    figure
        .series
        .iter()
        .zip(&frame.series)
        .zip(places)
        .map(|((series, drawn), entry)| {
            let segments: Vec<Vec<Value>> = drawn
                .segments
                .iter()
                .map(|segment| {
                    let row = |point: &crate::Point| match point.interval {
                        Some((low, high)) => json!([point.x, point.y, low, high]),
                        None => json!([point.x, point.y]),
                    };
                    segment.iter().map(row).collect()
                })
                .collect();
            let mark = match series.mark {
                Mark::Line => "line",
                Mark::Dashed => "dashed",
                Mark::Dots => "dots",
            };
            json!({
                "name": by_turns(&series.name),
                "entry": entry,
                "colour": series.colour % COUNT,
                "mark": mark,
                "segments": segments
            })
        })
        .collect()
}

fn specification(frame: &Frame, height: usize) -> Value {
    let x_ticks = axis_ticks(&frame.x, frame.positions(|point| point.x), X_TICKS).0;
    let y_ticks = axis_ticks(&frame.y, std::iter::empty(), height / Y_SPACING).0;
    let (x, x_signals) = axis("x", &frame.x, &x_ticks);
    let (y, y_signals) = axis("y", &frame.y, &y_ticks);
    let colours: Vec<usize> = (0..COUNT).collect();
    let colour =
        json!({ "field": "colour", "type": "nominal", "scale": { "domain": colours }, "legend": null });
    // Series of entries other than the highlighted one step back.
    let seen = |full: f64| json!({ "condition": { "test": "highlight < 0 || datum.entry === highlight", "value": full }, "value": full * 0.15 });
    let with = |mut encoding: Value, extra: Value| {
        if let (Some(fields), Value::Object(extra)) = (encoding.as_object_mut(), extra) {
            fields.extend(extra);
        }
        encoding
    };
    let position = json!({ "x": x, "y": y });
    let mut interval =
        json!({ "x": x, "y": with(y.clone(), json!({ "field": "low" })), "y2": { "field": "high" } });
    interval = with(interval, json!({ "color": colour }));
    let detail = |break_field: &str| json!([{ "field": "series", "type": "nominal" }, { "field": break_field, "type": "nominal" }]);
    // Areas would take a field of order for one more thing to group by; without one they keep the order of the rows.
    let as_given = json!({ "value": 0 });
    let order = json!({ "field": "order", "type": "quantitative" });
    let dash = json!({
        "field": "mark", "type": "nominal", "legend": null,
        "scale": { "domain": ["line", "dashed"], "range": [[1, 0], [6, 4]] }
    });
    let shape = json!({
        "field": "colour", "type": "nominal", "legend": null, "scale": { "domain": colours, "range": SHAPES }
    });
    json!({
        "$schema": SCHEMA,
        "width": "container",
        "height": height,
        "autosize": { "type": "fit-x", "contains": "padding" },
        "params": [
            { "name": "highlight", "value": -1 },
            x_signals[0], x_signals[1], y_signals[0], y_signals[1]
        ],
        "data": { "name": "points" },
        "layer": [
            {
                "transform": [{ "filter": "datum.mark == 'line' && isValid(datum.low)" }],
                "mark": { "type": "area", "tooltip": null },
                "encoding": with(interval.clone(), json!({ "detail": detail("run"), "order": as_given, "opacity": seen(0.18) }))
            },
            {
                "transform": [{ "filter": "datum.mark != 'dots'" }],
                "mark": { "type": "line", "strokeWidth": 2, "tooltip": null },
                "encoding": with(position.clone(), json!({
                    "color": colour, "detail": detail("segment"), "order": order, "strokeDash": dash, "opacity": seen(1.0)
                }))
            },
            {
                "transform": [{ "filter": "datum.mark == 'dots' && isValid(datum.low)" }],
                "mark": { "type": "rule", "strokeWidth": 1.4, "tooltip": null },
                "encoding": with(interval, json!({ "opacity": seen(1.0) }))
            },
            {
                "transform": [{ "filter": "datum.mark == 'dots' || datum.lone" }],
                "mark": { "type": "point", "filled": true, "size": 60, "tooltip": null },
                "encoding": with(position.clone(), json!({ "color": colour, "shape": shape, "opacity": seen(1.0) }))
            },
            {
                "params": [{
                    "name": "hover",
                    "select": { "type": "point", "on": "pointermove", "nearest": true, "clear": "pointerout" }
                }],
                "mark": { "type": "point", "filled": false, "size": 130, "strokeWidth": 1.8, "tooltip": { "content": "data" } },
                "encoding": with(position, json!({
                    "color": colour,
                    "opacity": { "condition": { "param": "hover", "empty": false, "value": 1 }, "value": 0 }
                }))
            }
        ]
    })
}

/// The encoding of an axis, and the parameters that hold its ticks and what they say.
fn axis(channel: &str, range: &Range, ticks: &[Tick]) -> (Value, [Value; 2]) {
    let values: Vec<f64> = ticks.iter().map(|tick| tick.value).collect();
    let labels: Vec<String> = ticks.iter().map(|tick| tick.label.unicode()).collect();
    let kind = match range.scale {
        Scale::Linear => "linear",
        Scale::Logarithmic => "log",
    };
    let encoding = json!({
        "field": channel,
        "type": "quantitative",
        "scale": { "type": kind, "domain": [range.low, range.high], "nice": false, "zero": false },
        "axis": {
            "title": null,
            "values": values,
            "labelExpr": format!("{channel}Labels[indexof({channel}Ticks, datum.value)]"),
            "labelOverlap": "greedy",
            "labelSeparation": 4
        }
    });
    let signal = |name: &str, value: Value| json!({ "name": format!("{channel}{name}"), "value": value });
    (encoding, [signal("Ticks", json!(values)), signal("Labels", json!(labels))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_figure_has_a_specification() {
        let value = curves(&Figure::default());
        assert_eq!(value["specification"]["layer"].as_array().map(Vec::len), Some(5));
        assert!(!value.to_string().contains("null,null"));
    }
}
