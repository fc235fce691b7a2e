// The picture of the concepts: all of it within its frame, and no label over a circle or another label.
(() => {
  const MARGIN_PX = 36; // around the picture, for the labels at its rim
  const GAP_PX = 5; // between a circle and its label
  const RIM_PX = 2; // letters reach beyond what ECharts takes for their box
  const LARGEST = 1.5; // so much a small picture grows at most

  const ROAM = { type: "graphRoam", seriesIndex: 0 };

  const series = (chart) => chart.getModel().getSeriesByIndex(0);
  const apart = (a, b) =>
    a.x + a.width + RIM_PX <= b.x || b.x + b.width + RIM_PX <= a.x || a.y + a.height + RIM_PX <= b.y || b.y + b.height + RIM_PX <= a.y;

  // Where the circles are, in pixels of the frame.
  function circles(chart) {
    const data = series(chart).getData();
    return data.mapArray((at) => {
      const path = data.getItemGraphicEl(at)?.childAt(0);
      const rect = path?.getBoundingRect().clone();
      rect?.applyTransform(path.getComputedTransform() ?? [1, 0, 0, 1, 0, 0]);
      return rect;
    });
  }

  // Moves and zooms so that every circle is within the frame.
  function fit(chart) {
    const all = circles(chart).filter(Boolean);
    if (!all.length) return;
    const left = Math.min(...all.map((one) => one.x));
    const right = Math.max(...all.map((one) => one.x + one.width));
    const top = Math.min(...all.map((one) => one.y));
    const bottom = Math.max(...all.map((one) => one.y + one.height));
    const [width, height] = [chart.getWidth(), chart.getHeight()];
    const zoom = Math.min(
      (width - 2 * MARGIN_PX) / Math.max(1, right - left), (height - 2 * MARGIN_PX) / Math.max(1, bottom - top), LARGEST);
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    chart.dispatchAction({ ...ROAM, dx: width / 2 - x, dy: height / 2 - y });
    zoomBy(chart, zoom);
  }

  // About the middle of the frame. Nobody but the mouse has ECharts place the labels anew.
  function zoomBy(chart, zoom) {
    chart.dispatchAction({ ...ROAM, zoom, originX: chart.getWidth() / 2, originY: chart.getHeight() / 2 });
    chart.updateLabelLayout();
  }

  // ECharts asks for one label after another, those of the largest circles first, whenever it has drawn.
  let pass = { chart: null, last: -1, circles: [], placed: [] };
  function label(chart, params) {
    if (params.dataType === "edge") return {};
    if (pass.chart !== chart || params.dataIndex <= pass.last) pass = { chart, circles: circles(chart), placed: [] };
    pass.last = params.dataIndex;
    const rect = pass.circles[params.dataIndex] ?? params.rect; // that of ECharts is from before the last zoom
    const [w, h] = [params.labelRect.width, params.labelRect.height];
    const [x, y] = [rect.x + rect.width / 2, rect.y + rect.height / 2];
    const places = [
      { x: rect.x + rect.width + GAP_PX, y, align: "left", verticalAlign: "middle" },
      { x: rect.x - GAP_PX, y, align: "right", verticalAlign: "middle" },
      { x, y: rect.y - GAP_PX, align: "center", verticalAlign: "bottom" },
      { x, y: rect.y + rect.height + GAP_PX, align: "center", verticalAlign: "top" },
    ];
    const frame = { x: 0, y: 0, width: chart.getWidth(), height: chart.getHeight() };
    for (const place of places) {
      const box = {
        x: place.x - { left: 0, center: w / 2, right: w }[place.align],
        y: place.y - { top: 0, middle: h / 2, bottom: h }[place.verticalAlign],
        width: w, height: h,
      };
      const inside = box.x >= 0 && box.y >= 0 && box.x + w <= frame.width && box.y + h <= frame.height;
      const free = pass.circles.every((one, at) => !one || at === params.dataIndex || apart(box, one));
      if (inside && free && pass.placed.every((one) => apart(box, one))) {
        pass.placed.push(box);
        return { ...place, hideOverlap: true };
      }
    }
    return { x: -9999, y: -9999, hideOverlap: true };
  }

  // The layout has come to rest. Once for each size of the frame, and then true; after that it stays as the user has moved it.
  function finished(box, chart) {
    const size = `${box.clientWidth}x${box.clientHeight}`;
    if (box.dataset.fitted === size) return false;
    box.dataset.fitted = size;
    fit(chart);
    return true;
  }

  window.uniunGraph = { fit, zoomBy, label, finished };
})();
