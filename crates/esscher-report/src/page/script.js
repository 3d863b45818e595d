// The script of a report: sets formulas, draws figures, offers files, switches between light and dark.
(function () {
  'use strict';
  const root = document.documentElement;
  root.classList.add('js');
  const page = JSON.parse(document.querySelector('script[type="application/json"]').textContent);

  // Formulas. One that cannot be set keeps its source.
  if (window.katex) {
    for (const element of document.querySelectorAll('.formula')) {
      const source = element.textContent;
      try {
        katex.render(source, element, {
          displayMode: element.classList.contains('displayed'), throwOnError: false, errorColor: 'currentColor'
        });
      } catch (failure) {
        element.textContent = source;
      }
    }
  }

  // Light and dark.
  const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : prefersDark.matches;
  document.querySelector('button.theme').addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    drawAll();
  });
  prefersDark.addEventListener('change', () => drawAll());

  // Numbers, written as in the tables.
  const raised = { '-': '⁻', 0: '⁰', 1: '¹', 2: '²', 3: '³', 4: '⁴', 5: '⁵', 6: '⁶', 7: '⁷', 8: '⁸', 9: '⁹' };
  function written(value) {
    if (value === 0) return '0';
    const [mantissa, exponent] = value.toExponential(5).split('e').map(Number);
    if (exponent >= -3 && exponent < 6) {
      const digits = String(Number(value.toPrecision(6))).replace('-', '−');
      return exponent < 4 ? digits : digits.replace(/(\d+)(\d{3})/, '$1\u202f$2');
    }
    const power = '10' + String(exponent).split('').map(sign => raised[sign]).join('');
    return mantissa === 1 ? power : String(mantissa).replace('-', '−') + '×' + power;
  }

  // Labels: texts that stand on the line and below it by turns.
  function lettered(pieces) {
    return pieces.map((text, index) => {
      if (index % 2 === 0) return text;
      const lowered = document.createElement('sub');
      lowered.textContent = text;
      return lowered;
    });
  }

  // What the tooltip says: of a point its series, x, y and interval; of a cell its row, column and value.
  function toldOfPoint(drawing, datum) {
    const name = document.createElement('strong');
    name.append(...lettered(drawing.series[datum.series].name));
    name.className = 'series-' + datum.colour;
    tooltip.appendChild(name);
    const [x, y] = drawing.labels;
    const lines = [[x.length ? x : ['x'], written(datum.x)], [y.length ? y : ['y'], written(datum.y)]];
    if (datum.ends) {
      const [low, high] = datum.ends;
      lines.push([['interval'], (low === null ? '−∞' : written(low)) + ' … ' + (high === null ? '∞' : written(high))]);
    }
    return lines;
  }
  function toldOfCell(drawing, datum) {
    const [x, y, colour] = drawing.labels;
    const [columns, rows] = drawing.names;
    const value = datum.value === undefined ? 'not measured' : typeof datum.value === 'string' ? datum.value : written(datum.value);
    return [
      [y.length ? y : ['row'], lettered(rows[datum.row])],
      [x.length ? x : ['column'], lettered(columns[datum.column])],
      [colour.length ? colour : ['value'], value + (datum.crossed ? ' (not on the scale)' : '')]
    ];
  }

  // The tooltip of the nearest point, or of the cell below the pointer.
  const tooltip = document.createElement('div');
  tooltip.className = 'tooltip';
  tooltip.setAttribute('role', 'status');
  document.body.appendChild(tooltip);
  function showTooltip(drawing, event, datum) {
    if (!datum || (datum.series === undefined && datum.row === undefined)) {
      tooltip.classList.remove('shown');
      return;
    }
    tooltip.replaceChildren();
    for (const [label, value] of drawing.cells ? toldOfCell(drawing, datum) : toldOfPoint(drawing, datum)) {
      const line = document.createElement('div');
      const key = document.createElement('span');
      key.append(...lettered(label), ' ');
      line.append(key, ...value);
      tooltip.appendChild(line);
    }
    tooltip.classList.add('shown');
    const box = tooltip.getBoundingClientRect();
    const left = event.clientX + 14 + box.width > root.clientWidth ? event.clientX - box.width - 14 : event.clientX + 14;
    const top = event.clientY + 14 + box.height > window.innerHeight ? event.clientY - box.height - 14 : event.clientY + 14;
    tooltip.style.left = Math.max(4, left) + 'px';
    tooltip.style.top = Math.max(4, top) + 'px';
  }

  // Figures.
  function rows(series, [bottom, top]) {
    // An interval may reach beyond the axis: it is drawn to the edge, and told in full.
    const inside = (end, infinite) => Math.min(top, Math.max(bottom, end === null ? infinite : end));
    const all = [];
    series.forEach((one, index) => {
      let run = 0;
      one.segments.forEach((segment, number) => {
        run += 1;
        segment.forEach(([x, y, low, high], order) => {
          if (low === undefined) run += 1;
          const row = { series: index, entry: one.entry, colour: one.colour, mark: one.mark, segment: number, run, order, x, y };
          if (low !== undefined) {
            row.low = inside(low, -Infinity);
            row.high = inside(high, Infinity);
            row.ends = [low, high];
          }
          if (segment.length === 1) row.lone = true;
          all.push(row);
        });
      });
    });
    return all;
  }

  // Cells of a heat map: [value, level, whether it is marked], or null where nothing was measured.
  function cells(all) {
    const style = getComputedStyle(root);
    const blank = style.getPropertyValue('--rule').trim();
    const quiet = style.getPropertyValue('--quiet').trim();
    return all.flatMap((cells, row) => cells.map((cell, column) => {
      if (cell === null) return { row, column, paint: blank, ink: quiet, hatched: true };
      const [value, level, marked] = cell;
      if (level === null) return { row, column, value, marked, paint: blank, ink: quiet, crossed: true };
      return { row, column, value, marked, paint: page.ramp.paint[level], ink: page.ramp.ink[level] };
    }));
  }

  function theme() {
    const style = getComputedStyle(root);
    const ink = style.getPropertyValue('--ink').trim();
    const faint = style.getPropertyValue('--rule').trim();
    const quiet = style.getPropertyValue('--quiet').trim();
    const font = style.getPropertyValue('--sans').trim();
    return {
      // The page describes the figure in words; a description of every mark would bury them.
      aria: false,
      background: 'transparent',
      font,
      view: { stroke: null },
      axis: {
        labelColor: ink, titleColor: ink, gridColor: faint, domainColor: quiet, tickColor: quiet,
        labelFontSize: 12, titleFontSize: 13, titleFontWeight: 500, titlePadding: 10, labelPadding: 4, labelFlush: false
      },
      range: { category: page.palettes[isDark() ? 'dark' : 'light'] }
    };
  }

  // More marks than this are faster as pixels.
  const manyRows = 1500;
  const views = new Map();

  async function draw(figure) {
    const drawing = page.figures[figure.dataset.figure];
    if (!drawing || !window.vega) return;
    const chart = figure.querySelector('.chart');
    const values = drawing.cells ? cells(drawing.cells) : rows(drawing.series, drawing.specification.layer[0].encoding.y.scale.domain);
    const specification = Object.assign({}, drawing.specification, { data: { values } });
    try {
      const compiled = vegaLite.compile(specification, { config: theme(), logger: vega.logger(vega.Error) }).spec;
      const old = views.get(figure);
      const highlight = old && drawing.series ? old.signal('highlight') : -1;
      figure.classList.add('drawn');
      chart.replaceChildren();
      const view = new vega.View(vega.parse(compiled, null, { ast: true }), {
        expr: vegaInterpreter,
        renderer: values.length > manyRows ? 'canvas' : 'svg',
        container: chart,
        hover: true,
        logLevel: vega.Error,
        tooltip: (handler, event, item, datum) => showTooltip(drawing, event, datum)
      });
      views.set(figure, view);
      if (old) old.finalize();
      if (drawing.series) view.signal('highlight', highlight);
      await view.runAsync();
      placeTitles(figure, chart, view);
    } catch (failure) {
      // The static drawing stays.
      figure.classList.remove('drawn');
      console.error(failure);
    }
  }

  // The titles of the axes stand in the middle of the axes, not of the drawing with its numbers.
  function placeTitles(figure, chart, view) {
    const [left, top] = view.origin();
    const { width, height } = chart.firstElementChild.getBoundingClientRect();
    const style = figure.querySelector('.plot').style;
    style.setProperty('--left', left + 'px');
    style.setProperty('--right', Math.max(0, width - left - view.width()) + 'px');
    style.setProperty('--top', top + 'px');
    style.setProperty('--bottom', Math.max(0, height - top - view.height()) + 'px');
  }

  // One after the other, with a breath between, so that the page can be read and scrolled meanwhile.
  let round = 0;
  async function drawAll() {
    const mine = ++round;
    for (const figure of document.querySelectorAll('figure')) {
      await new Promise(resolve => setTimeout(resolve));
      if (mine !== round) return;
      await draw(figure);
    }
  }

  for (const entry of document.querySelectorAll('.legend button')) {
    entry.addEventListener('click', () => {
      const figure = entry.closest('figure');
      const view = views.get(figure);
      const pressed = entry.getAttribute('aria-pressed') === 'true';
      for (const other of figure.querySelectorAll('.legend button')) other.setAttribute('aria-pressed', 'false');
      entry.setAttribute('aria-pressed', String(!pressed));
      if (view) view.signal('highlight', pressed ? -1 : Number(entry.dataset.entry)).runAsync();
    });
  }

  // Paper shows folded tables.
  let unfolded = [];
  window.addEventListener('beforeprint', () => {
    unfolded = [...unfolded, ...document.querySelectorAll('details:not([open])')];
    for (const table of unfolded) table.open = true;
  });
  window.addEventListener('afterprint', () => {
    for (const table of unfolded) table.open = false;
    unfolded = [];
  });

  // Files.
  function save(name, blob) {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function savePng(name, source) {
    const density = 3;
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement('canvas');
      canvas.width = image.width * density;
      canvas.height = image.height * density;
      canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(blob => save(name, blob), 'image/png');
    };
    image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(source);
  }

  for (const button of document.querySelectorAll('.tools button')) {
    button.addEventListener('click', () => {
      const owner = button.closest('[data-file]');
      const kind = button.dataset.kind;
      const file = page.files[owner.dataset.file];
      const name = file.name + '.' + kind;
      if (kind === 'svg' || kind === 'png') {
        const source = new XMLSerializer().serializeToString(owner.querySelector('.static svg'));
        if (kind === 'svg') save(name, new Blob([source], { type: 'image/svg+xml' }));
        else savePng(name, source);
      } else {
        save(name, new Blob([file[kind]], { type: 'text/plain;charset=utf-8' }));
      }
    });
  }

  drawAll();
})();
