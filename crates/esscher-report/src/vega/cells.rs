//! A heat map as a Vega-Lite specification.

use serde_json::{Value, json};

use crate::heat_map::{HeatMap, name};
use crate::numbers::number;
use crate::shading::{Shade, shading};
use crate::subscript::unicode;

use super::{SCHEMA, by_turns};

/// Heights in pixels: of all rows as long as each keeps its least height, of a row, and of maps of very many rows.
const USUAL: f64 = 540.0;
const LEAST_ROW: f64 = 9.0;
const TALLEST_ROW: f64 = 40.0;
const TALLEST: f64 = 2000.0;
const WIDEST_COLUMN: f64 = 72.0;
/// Names of rows and columns are cut at this width in pixels.
const WIDEST_NAME: f64 = 120.0;

/// The specification of a heat map and its cells.
///
/// `specification` reads rows with the fields `row`, `column`, `paint`, `ink`, `marked`, `hatched` and `crossed`; the
/// script of the page makes them from the compact `cells`, row by row: `null` where nothing was measured, otherwise
/// `[value, level]` or `[value]` if it has no colour, and a last `true` if it is marked. A value that JSON cannot hold
/// is text. The bar of colours is not drawn: the page has it.
pub(super) fn cells(map: &HeatMap) -> Value {
    let cell = |shade: &Shade| match shade {
        Shade::Level(value, level) if map.marks(*value) => json!([value, level, true]),
        Shade::Level(value, level) => json!([value, level]),
        Shade::OffScale(value) => {
            let value = if value.is_finite() { json!(value) } else { json!(number(*value, None).unicode()) };
            json!([value, null, value.as_f64().is_some_and(|value| map.marks(value))])
        }
        Shade::Missing => Value::Null,
    };
    let cells: Vec<Vec<Value>> =
        shading(map).shades.iter().map(|shades| shades.iter().map(cell).collect()).collect();
    let (rows, columns) = map.size();
    let lettered = |names: &[String], count: usize| -> Vec<Vec<String>> {
        (0..count).map(|position| by_turns(name(names, position))).collect()
    };
    json!({
        "specification": specification(map),
        "cells": cells,
        "names": [lettered(&map.columns, columns), lettered(&map.rows, rows)],
        "labels": [by_turns(&map.x), by_turns(&map.y), by_turns(&map.colour_label)]
    })
}

/// Width and height of the cells in pixels: the width at most, the height exactly.
pub(crate) fn size(map: &HeatMap) -> (f64, f64) {
    let (rows, columns) = map.size();
    let (rows, columns) = (rows.max(1) as f64, columns.max(1) as f64);
    let height = (rows * TALLEST_ROW).min(USUAL.max(rows * LEAST_ROW)).min(TALLEST);
    (columns * WIDEST_COLUMN.min(3.0 * height / rows), height)
}

fn specification(map: &HeatMap) -> Value {
    let (rows, columns) = map.size();
    let (_, height) = size(map);
    let written = |names: &[String], count: usize| -> Vec<String> {
        (0..count).map(|position| unicode(name(names, position))).collect()
    };
    let axis = |channel: &str, names: &str, count: usize| {
        json!({
            "field": channel,
            "type": "ordinal",
            "scale": { "domain": (0..count).collect::<Vec<_>>(), "paddingInner": 0.04, "paddingOuter": 0 },
            "axis": {
                "title": null,
                "grid": false,
                "ticks": false,
                "domain": false,
                "labelAngle": 0,
                "labelExpr": format!("{names}[datum.value]"),
                "labelOverlap": "greedy",
                "labelSeparation": 4,
                "labelLimit": WIDEST_NAME
            }
        })
    };
    let (x, y) = (axis("column", "columnNames", columns), axis("row", "rowNames", rows));
    let colour = |field: &str| json!({ "field": field, "type": "nominal", "scale": null, "legend": null });
    // Signs are a part of the lower side of a cell, so of its height in most maps.
    let area = |part: f64| (part * height / rows.max(1) as f64).clamp(2.0, 22.0).powi(2);
    let sign = |which: &str, shape: &str, filled: bool, part: f64| {
        json!({
            "transform": [{ "filter": format!("datum.{which}") }],
            "mark": {
                "type": "point", "shape": shape, "filled": filled, "size": area(part), "strokeWidth": 1.1,
                "opacity": 1, "tooltip": { "content": "data" }
            },
            "encoding": { "x": x, "y": y, "color": colour("ink") }
        })
    };
    json!({
        "$schema": SCHEMA,
        "width": "container",
        "height": height,
        "autosize": { "type": "fit-x", "contains": "padding" },
        "params": [
            { "name": "columnNames", "value": written(&map.columns, columns) },
            { "name": "rowNames", "value": written(&map.rows, rows) }
        ],
        "data": { "name": "points" },
        "layer": [
            {
                "params": [{
                    "name": "hover",
                    "select": { "type": "point", "on": "pointerover", "clear": "pointerout" }
                }],
                "mark": { "type": "rect", "strokeWidth": 2, "tooltip": { "content": "data" } },
                "encoding": {
                    "x": x, "y": y, "fill": colour("paint"),
                    "stroke": {
                        "condition": { "param": "hover", "empty": false, "field": "ink", "type": "nominal", "scale": null },
                        "value": null
                    }
                }
            },
            sign("hatched", "M-1,1L1,-1M-1,0L0,-1M0,1L1,0", false, 0.6),
            sign("crossed", "M-1,-1L1,1M-1,1L1,-1", false, 0.35),
            sign("marked", "circle", true, 0.22)
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    #[test]
    fn cells_say_what_they_hold() {
        let map = HeatMap {
            cells: vec![vec![Some(1.0), Some(100.0)], vec![Some(f64::INFINITY), None], vec![Some(0.0)]],
            scale: Scale::Logarithmic,
            threshold: Some(1.0),
            ..HeatMap::default()
        };
        let value = cells(&map);
        assert_eq!(
            value["cells"],
            json!([[[1.0, 0, true], [100.0, 255]], [["∞", null, false], null], [[0.0, null, true], null]])
        );
    }

    #[test]
    fn every_size_has_a_height_that_can_be_drawn() {
        for (rows, height) in [(0, 40.0), (6, 240.0), (30, 540.0), (64, 576.0), (100_000, 2000.0)] {
            let map = HeatMap { rows: vec![String::new(); rows], ..HeatMap::default() };
            assert_eq!(size(&map).1, height);
        }
    }
}
