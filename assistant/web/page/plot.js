/** Plots by uPlot, which is loaded once, when the first one is shown. */
import { html, useEffect, useRef } from "./vendor/preact.js";

let loading = null;

function load() {
  loading ??= new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), { src: new URL("vendor/uplot.js", import.meta.url), onerror: () => reject((loading = null)) });
    script.onload = () => resolve(window.uPlot);
    document.head.append(script);
  });
  return loading;
}

/** The colour that a name of `page.css` stands for now, light or dark. */
function resolve(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/**
 * @param {{times: number[], series: {label: string, values: number[], show?: (v: number) => string, bars?: boolean,
 *   fill?: boolean}[], label: string}} props times in seconds
 */
export function Plot({ times, series, label, height = 220 }) {
  const place = useRef(null);
  useEffect(() => {
    let plot = null;
    let gone = false;
    const resized = () => place.current && plot?.setSize({ width: place.current.clientWidth, height });
    load().then((uPlot) => {
      if (gone) return;
      const [ink, line, accent] = ["--quiet", "--line", "--accent"].map(resolve);
      const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, font: "12px system-ui" };
      const show = series[0].show ?? String;
      plot = new uPlot(
        {
          width: place.current.clientWidth,
          height,
          scales: { y: { range: (_, low, high) => [Math.min(0, low), Math.max(high * 1.05, 1e-9)] } },
          axes: [axis, { ...axis, size: 64, values: (_, values) => values.map(show) }],
          series: [
            {},
            ...series.map((it, n) => ({
              label: it.label,
              stroke: n ? ink : accent,
              width: 1.5,
              value: (_, value) => (value == null ? "" : (it.show ?? String)(value)),
              ...(it.bars && { paths: uPlot.paths.bars({ size: [0.6, 40] }), fill: accent, points: { show: false } }),
            })),
          ],
        },
        [times, ...series.map((it) => it.values)],
        place.current,
      );
      window.addEventListener("resize", resized);
    });
    return () => {
      gone = true;
      window.removeEventListener("resize", resized);
      plot?.destroy();
    };
  }, [times.join(), series.map((it) => it.values.join()).join(";")]);
  return html`<div class="plot" ref=${place} role="img" aria-label=${label}></div>`;
}
