/**
 * Counters, gauges and histograms of a process, and their text for Prometheus. A series is made at its first value;
 * label values come from sets that are known beforehand (services, partitions, codes), never from users, and a metric
 * refuses to grow past `SERIES_MAX` series.
 */

const SERIES_MAX = 1_000;
/** Seconds: from an in-process step to a request's deadline. */
const LATENCY_BUCKETS_SECS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

type Labels = Readonly<Record<string, string | number>>;

export interface Counter {
  /** `by` is not negative; default 1. */
  add(labels?: Labels, by?: number): void;
}
export interface Gauge {
  set(value: number, labels?: Labels): void;
}
export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

export class Metrics {
  readonly #metrics = new Map<string, Metric>();

  counter(name: string, help: string): Counter {
    const metric = this.#metric(name, help, 'counter');
    return {
      add(labels = {}, by = 1) {
        if (by < 0) throw new RangeError(`the counter ${name} cannot go back by ${by}`);
        const series = metric.series(labels, 1);
        series[0] = (series[0] ?? 0) + by;
      },
    };
  }

  gauge(name: string, help: string): Gauge {
    const metric = this.#metric(name, help, 'gauge');
    return {
      set(value, labels = {}) {
        metric.series(labels, 1)[0] = value;
      },
    };
  }

  /** `bounds` are upper bounds, ascending; what is above the last counts in `+Inf`. */
  histogram(name: string, help: string, bounds: readonly number[] = LATENCY_BUCKETS_SECS): Histogram {
    const metric = this.#metric(name, help, 'histogram', bounds);
    return {
      observe(value, labels = {}) {
        // A count for each bound and for what is above, then the sum.
        const series = metric.series(labels, bounds.length + 2);
        const at = bounds.findIndex((bound) => value <= bound);
        const bucket = at < 0 ? bounds.length : at;
        series[bucket] = (series[bucket] ?? 0) + 1;
        series[bounds.length + 1] = (series[bounds.length + 1] ?? 0) + value;
      },
    };
  }

  /** Prometheus text format 0.0.4. */
  render(): string {
    return [...this.#metrics.values()].map((metric) => metric.render()).join('');
  }

  #metric(name: string, help: string, type: Metric['type'], bounds: readonly number[] = []): Metric {
    if (this.#metrics.has(name)) throw new Error(`the metric ${name} is there already`);
    const metric = new Metric(name, help, type, bounds);
    this.#metrics.set(name, metric);
    return metric;
  }
}

class Metric {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  /** By their labels as text. */
  readonly #series = new Map<string, number[]>();

  constructor(name: string, help: string, type: Metric['type'], bounds: readonly number[]) {
    this.#name = name;
    this.#help = help;
    this.type = type;
    this.#bounds = bounds;
  }

  series(labels: Labels, length: number): number[] {
    const key = Object.entries(labels)
      .map(([name, value]) => `${name}="${escapeLabel(String(value))}"`)
      .join(',');
    let series = this.#series.get(key);
    if (series === undefined) {
      if (this.#series.size >= SERIES_MAX)
        throw new RangeError(`the metric ${this.#name} has ${SERIES_MAX} series; its labels are not from a known set`);
      series = Array.from({ length }, () => 0);
      this.#series.set(key, series);
    }
    return series;
  }

  render(): string {
    const lines = [
      `# HELP ${this.#name} ${this.#help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`,
      `# TYPE ${this.#name} ${this.type}`,
    ];
    for (const [labels, values] of this.#series) {
      if (this.type === 'histogram') lines.push(...this.#histogramLines(labels, values));
      else lines.push(`${this.#name}${labels === '' ? '' : `{${labels}}`} ${values[0] ?? 0}`);
    }
    return `${lines.join('\n')}\n`;
  }

  #histogramLines(labels: string, values: readonly number[]): string[] {
    const before = labels === '' ? '' : `${labels},`;
    let count = 0;
    const lines = [...this.#bounds, '+Inf'].map((bound, index) => {
      count += values[index] ?? 0;
      return `${this.#name}_bucket{${before}le="${bound}"} ${count}`;
    });
    const braces = labels === '' ? '' : `{${labels}}`;
    return [
      ...lines,
      `${this.#name}_sum${braces} ${values[this.#bounds.length + 1] ?? 0}`,
      `${this.#name}_count${braces} ${count}`,
    ];
  }
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
