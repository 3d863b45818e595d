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
    const [mantissa, exponent] = value.toExponential(8).split('e').map(Number);
    if (exponent >= -3 && exponent < 6) {
      const digits = String(Number(value.toPrecision(9))).replace('-', '−');
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

  // The tooltip of the nearest point, or of the cell or the tile below the pointer.
  const tooltip = document.createElement('div');
  tooltip.className = 'tooltip';
  tooltip.setAttribute('role', 'status');
  document.body.appendChild(tooltip);
  const hideTooltip = () => tooltip.classList.remove('shown');
  function showTooltip(drawing, event, datum) {
    if (!datum || (datum.series === undefined && datum.row === undefined)) {
      hideTooltip();
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
    placeTooltip(event);
  }
  function placeTooltip(event) {
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

  // Tiles tell what they are. Their titles would show a second time, and late.
  for (const tile of document.querySelectorAll('.tile[title]')) {
    tile.dataset.told = tile.title;
    tile.setAttribute('aria-label', tile.title.replace(/\n/g, ', '));
    tile.removeAttribute('title');
    if (tile.tagName !== 'A') tile.setAttribute('role', 'img');
  }
  function showTile(event, tile) {
    tooltip.replaceChildren(...tile.dataset.told.split('\n').map((line, index) => {
      const element = document.createElement(index ? 'div' : 'strong');
      element.textContent = line;
      return element;
    }));
    placeTooltip(event);
  }
  for (const mosaic of document.querySelectorAll('table.tiles')) {
    mosaic.addEventListener('pointermove', event => {
      const tile = event.target.closest('.tile');
      if (tile) showTile(event, tile); else hideTooltip();
    });
    mosaic.addEventListener('pointerleave', hideTooltip);
    mosaic.addEventListener('focusin', event => {
      const box = event.target.getBoundingClientRect();
      if (event.target.matches('.tile:focus-visible')) showTile({ clientX: box.left, clientY: box.bottom }, event.target);
    });
    mosaic.addEventListener('focusout', hideTooltip);
  }

  // More marks than this are faster as pixels.
  const manyRows = 1500;
  // The views of each figure: one, or one for each panel.
  const views = new Map();

  async function draw(figure) {
    const drawing = page.figures[figure.dataset.figure];
    if (!drawing || !window.vega) return;
    try {
      const old = views.get(figure);
      const highlight = old && !drawing.cells ? old[0].signal('highlight') : -1;
      figure.classList.add('drawn');
      arrangeLegend(figure, drawing);
      const charts = drawing.panels ? arrangePanels(figure, drawing) : [{ chart: figure.querySelector('.chart') }];
      const fresh = [];
      for (const [index, { chart, change }] of charts.entries()) {
        const series = drawing.panels ? drawing.panels[index] : drawing.series;
        const values = drawing.cells ? cells(drawing.cells) : rows(series, drawing.specification.layer[0].encoding.y.scale.domain);
        const specification = Object.assign({}, drawing.specification, { data: { values } });
        const compiled = vegaLite.compile(specification, { config: theme(), logger: vega.logger(vega.Error) }).spec;
        if (change) change(compiled);
        chart.replaceChildren();
        const view = new vega.View(vega.parse(compiled, null, { ast: true }), {
          expr: vegaInterpreter,
          renderer: values.length > manyRows ? 'canvas' : 'svg',
          container: chart,
          hover: true,
          logLevel: vega.Error,
          tooltip: (handler, event, item, datum) => showTooltip({ ...drawing, series }, event, datum)
        });
        if (!drawing.cells) view.signal('highlight', highlight);
        await view.runAsync();
        fresh.push(view);
      }
      views.set(figure, fresh);
      if (old) for (const view of old) view.finalize();
      placeTitles(figure, charts, fresh);
      placeLegend(figure, fresh[0]);
    } catch (failure) {
      // The static drawing stays.
      figure.classList.remove('drawn');
      console.error(failure);
    }
  }

  // Panels stand in rows. Only the first of a row has numbers at its vertical axis, and the more room.
  const panelWidth = 250;
  const panelGap = 14;
  function arrangePanels(figure, drawing) {
    const grid = figure.querySelector('.chart');
    const panels = [...grid.querySelectorAll('.view')];
    const most = Math.max(1, Math.min(3, panels.length, Math.floor(grid.clientWidth / panelWidth)));
    const columns = most === 3 && panels.length === 4 ? 2 : most;
    const longest = Math.max(...drawing.specification.params.find(one => one.name === 'yLabels').value.map(label => label.length), 1);
    const numbers = 14 + 7 * longest;
    const width = (grid.clientWidth - numbers - panelGap * (columns - 1)) / columns;
    grid.style.gridTemplateColumns = columns === 1 ? '100%' :
      [width + numbers, ...Array(columns - 1).fill(width)].map(size => Math.floor(size) + 'px').join(' ');
    grid.dataset.columns = columns;
    return panels.map((chart, index) => ({
      chart,
      change: compiled => {
        const first = index % columns === 0;
        chart.parentElement.style.setProperty('--numbers', first ? numbers + 'px' : '0');
        for (const axis of compiled.axes || []) {
          if (axis.orient !== 'left') continue;
          if (first) Object.assign(axis, { minExtent: numbers, maxExtent: numbers });
          else Object.assign(axis, { labels: false, ticks: false, minExtent: 0, maxExtent: 0 });
        }
      }
    }));
  }

  // The titles of the axes stand in the middle of the axes, not of the drawing with its numbers.
  function placeTitles(figure, charts, drawn) {
    if (charts.length !== 1) return;
    const [left, top] = drawn[0].origin();
    const { width, height } = charts[0].chart.firstElementChild.getBoundingClientRect();
    const style = figure.querySelector('.plot').style;
    style.setProperty('--left', left + 'px');
    style.setProperty('--right', Math.max(0, width - left - drawn[0].width()) + 'px');
    style.setProperty('--top', top + 'px');
    style.setProperty('--bottom', Math.max(0, height - top - drawn[0].height()) + 'px');
  }

  // Names stand beside the plot where their lines end, if all of them fit there; below it otherwise.
  const narrow = 600;
  const leaders = 18;
  const entriesOf = new Map();
  function arrangeLegend(figure, drawing) {
    const around = figure.querySelector('.drawing');
    const legend = figure.querySelector('.legend');
    if (!legend || around.classList.contains('below')) return;
    if (!entriesOf.has(legend)) entriesOf.set(legend, [...legend.querySelectorAll('li')]);
    const entries = entriesOf.get(legend);
    for (const old of legend.querySelectorAll('.leaders')) old.remove();
    for (const entry of entries) entry.style.marginTop = '';
    const end = entry => entry.dataset.end === undefined ? -1 : Number(entry.dataset.end);
    around.classList.add('beside');
    legend.append(...[...entries].sort((one, other) => end(other) - end(one)));
    const height = entries.reduce((sum, entry) => sum + entry.offsetHeight, 0);
    if (around.clientWidth < narrow || height > drawing.specification.height + 16) {
      around.classList.remove('beside');
      legend.append(...entries);
    }
  }
  function placeLegend(figure, view) {
    const legend = figure.querySelector('.drawing.beside .legend');
    if (!legend) return;
    const top = view.origin()[1];
    const height = view.height();
    const boxes = [...legend.querySelectorAll('li')].map(entry => {
      const end = entry.dataset.end === undefined ? -1 : Number(entry.dataset.end);
      return { entry, height: entry.offsetHeight, wanted: (1 - end) * height };
    });
    const lines = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    lines.setAttribute('class', 'leaders');
    lines.setAttribute('width', leaders);
    lines.setAttribute('height', top + height + 10);
    lines.setAttribute('aria-hidden', 'true');
    let filled = 0;
    for (const [index, begin] of spread(boxes, top - 8, top + height + 8).entries()) {
      const { entry, wanted, height: own } = boxes[index];
      entry.style.marginTop = Math.max(0, begin - filled) + 'px';
      filled = Math.max(begin, filled) + own;
      if (!('once' in entry.dataset)) continue;
      const line = document.createElementNS(lines.namespaceURI, 'path');
      const [from, to] = [top + wanted, filled - own / 2];
      line.setAttribute('d', 'M1 ' + from + 'L' + (leaders - 2) + ' ' + to);
      line.setAttribute('class', entry.firstElementChild.className);
      lines.append(line);
    }
    legend.append(lines);
  }
  // Beginnings of boxes as near as possible to their places, in order and not over each other, as in static drawings.
  function spread(boxes, first, last) {
    const total = boxes.reduce((sum, box) => sum + box.height, 0);
    const blocks = [];
    let above = 0;
    for (const box of boxes) {
      let block = { begin: first + 8 + box.wanted - box.height / 2 - above, count: 1 };
      while (blocks.length && blocks[blocks.length - 1].begin > block.begin) {
        const before = blocks.pop();
        const count = before.count + block.count;
        block = { begin: (before.begin * before.count + block.begin * block.count) / count, count };
      }
      blocks.push(block);
      above += box.height;
    }
    above = 0;
    return blocks.flatMap(block => Array(block.count).fill(block.begin)).map((begin, index) => {
      const at = Math.min(Math.max(begin, first), Math.max(first, last - total)) + above;
      above += boxes[index].height;
      return at;
    });
  }

  // One after the other, with a breath between, so that the page can be read and scrolled meanwhile. What is folded is
  // drawn when it is unfolded.
  const isFolded = figure => figure.closest('details:not([open])') !== null;
  let round = 0;
  async function drawAll() {
    const mine = ++round;
    for (const figure of document.querySelectorAll('figure')) {
      if (isFolded(figure)) {
        stale.add(figure);
        continue;
      }
      await new Promise(resolve => setTimeout(resolve));
      if (mine !== round) return;
      stale.delete(figure);
      await draw(figure);
    }
  }
  const stale = new Set();
  document.addEventListener('toggle', async event => {
    for (const figure of event.target.querySelectorAll('figure')) {
      if (isFolded(figure) || !stale.has(figure)) continue;
      stale.delete(figure);
      await draw(figure);
    }
  }, true);

  // A page of another width: names may have to move, panels to stand in other rows.
  let width = window.innerWidth;
  let waiting;
  window.addEventListener('resize', () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 150);
  });

  for (const entry of document.querySelectorAll('.legend button')) {
    entry.addEventListener('click', () => {
      const figure = entry.closest('figure');
      const pressed = entry.getAttribute('aria-pressed') === 'true';
      for (const other of figure.querySelectorAll('.legend button')) other.setAttribute('aria-pressed', 'false');
      entry.setAttribute('aria-pressed', String(!pressed));
      for (const view of views.get(figure) || []) {
        view.signal('highlight', pressed ? -1 : Number(entry.dataset.entry)).runAsync();
      }
    });
  }

  // The address names a place: what holds it unfolds.
  function named(hash) {
    const id = hash.slice(1);
    try {
      return document.getElementById(decodeURIComponent(id));
    } catch (failure) {
      return document.getElementById(id);
    }
  }
  function goTo(hash) {
    const target = named(hash);
    if (!target) return;
    let moved = false;
    for (let fold = target.closest('details'); fold; fold = fold.parentElement.closest('details')) {
      moved = moved || !fold.open;
      fold.open = true;
    }
    if (moved) requestAnimationFrame(() => target.scrollIntoView());
  }
  window.addEventListener('hashchange', () => goTo(location.hash));
  document.addEventListener('click', event => {
    const link = event.target.closest('a[href^="#"]');
    if (link) goTo(link.getAttribute('href'));
  });
  goTo(location.hash);

  // The contents: beside the page, or a line above it that unfolds; the section that is read is marked.
  const nav = document.querySelector('nav');
  if (nav) {
    const list = nav.querySelector('details');
    const wide = window.matchMedia('(min-width: 1150px)');
    const fit = () => { list.open = wide.matches; };
    wide.addEventListener('change', fit);
    fit();
    nav.addEventListener('click', event => {
      if (event.target.closest('a') && !wide.matches) list.open = false;
    });
    list.querySelector('summary').addEventListener('click', event => {
      if (wide.matches) event.preventDefault();
    });
    const links = [...nav.querySelectorAll('ol a')];
    const sections = links.map(link => named(link.getAttribute('href')));
    let current;
    const mark = () => {
      const line = window.innerHeight * 0.3;
      let now = -1;
      sections.forEach((section, index) => {
        if (section && section.getBoundingClientRect().top <= line) now = index;
      });
      nav.classList.toggle('away', window.scrollY > window.innerHeight / 2);
      if (now === current) return;
      current = now;
      links.forEach((link, index) => {
        if (index === now) link.setAttribute('aria-current', 'true'); else link.removeAttribute('aria-current');
      });
      const item = links[now];
      if (item && wide.matches) {
        const [box, frame] = [item.getBoundingClientRect(), nav.getBoundingClientRect()];
        if (box.top < frame.top + 40) nav.scrollTop += box.top - frame.top - 60;
        if (box.bottom > frame.bottom - 20) nav.scrollTop += box.bottom - frame.bottom + 40;
      }
    };
    let asked = false;
    window.addEventListener('scroll', () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; mark(); });
    }, { passive: true });
    mark();
  }

  // Paper shows what is folded.
  let unfolded = [];
  window.addEventListener('beforeprint', () => {
    unfolded = [...unfolded, ...document.querySelectorAll('details:not([open])')];
    for (const fold of unfolded) fold.open = true;
  });
  window.addEventListener('afterprint', () => {
    for (const fold of unfolded) fold.open = false;
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
