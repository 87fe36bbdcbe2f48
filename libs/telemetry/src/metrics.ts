/**
 * What a process counts of itself, for Prometheus. All names stand in one table, so that whoever counts can neither invent one
 * nor leave out a label; labels are bounded: never a run, a user, a ref or free text. Several processes or threads are read as
 * one by adding their snapshots up.
 */
import {
  AggregatorRegistry,
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  Registry,
  type MetricObjectWithValues,
  type MetricValue,
  type RegistryContentType,
} from 'prom-client';

/** Seconds: from a commit on a fast disk to a build of hours. The same everywhere, so that figures can be laid side by side. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400];
const COUNTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];

interface Definition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
}

export const METRICS = {
  penstock_runs_total: {
    type: 'counter',
    help: 'Runs that have ended.',
    labels: ['status', 'verdict', 'trigger'],
  },
  penstock_runs_live: { type: 'gauge', help: 'Runs in memory or parked, by what they do.', labels: ['phase'] },
  penstock_run_duration_seconds: { type: 'histogram', help: 'From the creation of a run to its end.', labels: [] },
  penstock_stages_total: { type: 'counter', help: 'Stages that have ended.', labels: ['status', 'reason'] },
  penstock_stage_wait_seconds: {
    type: 'histogram',
    help: 'How long a stage waited for a runner, a gate for people, a retry for its time; a run for its place.',
    labels: ['kind'],
  },
  penstock_stage_start_seconds: {
    type: 'histogram',
    help: 'From the grant that reaches the runner to the process of the stage, its workspace and caches included.',
    labels: [],
  },
  penstock_stage_duration_seconds: {
    type: 'histogram',
    help: 'From the grant of the first attempt to the end of the stage.',
    labels: [],
  },
  penstock_queue_demand: {
    type: 'gauge',
    help: 'Stages that wait for a runner, by the labels they ask for.',
    labels: ['labels'],
  },
  penstock_queue_oldest_seconds: {
    type: 'gauge',
    help: 'For how long the longest waiting stage has waited for a runner.',
    labels: ['labels'],
  },
  penstock_runner_slots: {
    type: 'gauge',
    help: 'Slots of the runners that hold a lease. Each scheduler tells of all of them: of several, take one (max by labels and state).',
    labels: ['labels', 'state'],
  },
  penstock_partitions: { type: 'gauge', help: 'Partitions that this scheduler should own.', labels: ['state'] },
  penstock_commits_total: { type: 'counter', help: 'Commits to the journal.', labels: ['outcome'] },
  penstock_commit_seconds: {
    type: 'histogram',
    help: 'From the sending of a commit to its acknowledgement.',
    labels: [],
  },
  penstock_commit_runs: { type: 'histogram', help: 'Runs in one commit.', labels: [], buckets: COUNTS },
  penstock_projection_lag_seconds: {
    type: 'gauge',
    help: 'For how long the longest waiting commit has not been written to the store.',
    labels: [],
  },
  penstock_takeover_seconds: {
    type: 'histogram',
    help: 'From the beginning of the opening of a partition to its first answer.',
    labels: [],
  },
  penstock_http_requests_total: {
    type: 'counter',
    help: 'Requests that were answered.',
    labels: ['route', 'method', 'code'],
  },
  penstock_http_seconds: {
    type: 'histogram',
    help: 'From a request to the end of its answer; streams are not in it.',
    labels: ['route'],
  },
  penstock_stream_clients: { type: 'gauge', help: 'Event streams that are open.', labels: [] },
  penstock_stream_lag_seconds: {
    type: 'histogram',
    help: 'From the commit of an event to its writing to a stream.',
    labels: [],
  },
  penstock_deliveries_total: {
    type: 'counter',
    help: 'Deliveries of git hosts, by what was answered.',
    labels: ['provider', 'outcome'],
  },
  penstock_outgoing_total: {
    type: 'counter',
    help: 'Deliveries of outgoing webhooks: `taken`, `failed` (an attempt of them), `dead`, or `left_out` of a full outbox.',
    labels: ['outcome'],
  },
  penstock_contents_bytes_total: {
    type: 'counter',
    help: 'Bytes of large files that came and went without the broker.',
    labels: ['direction'],
  },
  penstock_spans_total: {
    type: 'counter',
    help: 'Spans of traces: `sent`, `dropped` (the queue was full), or `failed` (the receiver did not take them).',
    labels: ['outcome'],
  },
  penstock_clock_ahead_seconds: {
    type: 'gauge',
    help: "By how much the clock of a service's machine is ahead of the broker's; less than nothing: behind.",
    labels: [],
  },
  penstock_log_bytes_total: { type: 'counter', help: 'Bytes of log that this runner has handed in.', labels: [] },
} as const satisfies Readonly<Record<string, Definition>>;

type Table = typeof METRICS;
type NameOf<Type extends Definition['type']> = {
  [Name in keyof Table]: Table[Name] extends { readonly type: Type } ? Name : never;
}[keyof Table];
type Labels<Name extends keyof Table> = Readonly<Record<Table[Name]['labels'][number], string>>;

export interface Reading<Name extends keyof Table> {
  readonly labels: Labels<Name>;
  readonly value: number;
}

/** Who counts. */
export interface Meter {
  add<Name extends NameOf<'counter'>>(name: Name, labels: Labels<Name>, count?: number): void;
  observe<Name extends NameOf<'histogram'>>(name: Name, labels: Labels<Name>, value: number): void;
  /** Asked whenever somebody reads; readings of the same labels are added up. */
  gauge<Name extends NameOf<'gauge'>>(name: Name, read: () => Iterable<Reading<Name>>): void;
}

/** What was counted, as data: it crosses from one thread to another. */
export type MetricsSnapshot = MetricObjectWithValues<MetricValue<string>>[];

export interface MetricsText {
  readonly type: string;
  readonly body: string;
}

/** Counts nothing. */
export const noMeter: Meter = { add: () => {}, observe: () => {}, gauge: () => {} };

export class Metrics implements Meter {
  readonly #registry = new Registry();
  readonly #counters = new Map<string, Counter>();
  readonly #histograms = new Map<string, Histogram>();
  readonly #readers = new Map<string, (() => Iterable<Reading<keyof Table>>)[]>();

  /** `process`: also of the process itself. One of several threads counts that. */
  constructor(options: { readonly process: boolean }) {
    if (options.process) collectDefaultMetrics({ register: this.#registry });
  }

  add<Name extends NameOf<'counter'>>(name: Name, labels: Labels<Name>, count = 1): void {
    let counter = this.#counters.get(name);
    if (counter === undefined) {
      counter = new Counter({ ...this.#configuration(name) });
      this.#counters.set(name, counter);
    }
    counter.inc(labels, count);
  }

  observe<Name extends NameOf<'histogram'>>(name: Name, labels: Labels<Name>, value: number): void {
    let histogram = this.#histograms.get(name);
    if (histogram === undefined) {
      const definition: Definition = METRICS[name];
      histogram = new Histogram({ ...this.#configuration(name), buckets: [...(definition.buckets ?? SECONDS)] });
      this.#histograms.set(name, histogram);
    }
    // A clock that was set back makes no negative times.
    histogram.observe(labels, Math.max(0, value));
  }

  gauge<Name extends NameOf<'gauge'>>(name: Name, read: () => Iterable<Reading<Name>>): void {
    const readers = this.#readers.get(name) ?? [];
    readers.push(read as () => Iterable<Reading<keyof Table>>);
    if (this.#readers.has(name)) return;
    this.#readers.set(name, readers);
    new Gauge({
      ...this.#configuration(name),
      collect() {
        this.reset();
        for (const reader of readers) for (const { labels, value } of reader()) this.inc(labels, value);
      },
    });
  }

  #configuration(name: keyof Table) {
    const { help, labels } = METRICS[name];
    return { name, help, labelNames: [...labels], registers: [this.#registry] };
  }

  snapshot(): Promise<MetricsSnapshot> {
    return this.#registry.getMetricsAsJSON();
  }
}

/** As Prometheus reads it: all of the processes or threads added up, in the form that `accept` asks for. */
export async function metricsText(
  snapshots: readonly MetricsSnapshot[],
  accept: string | undefined,
): Promise<MetricsText> {
  const isOpen = accept?.includes('application/openmetrics-text') === true;
  const added = snapshots.map((snapshot) =>
    snapshot.map((metric) => ({
      ...metric,
      // There the values of a counter end in `_total`, and its name does not.
      name: isOpen && isCounter(metric) ? metric.name.replace(/_total$/u, '') : metric.name,
      // Of the process's own figures some would be left out, or averaged, although one snapshot alone has them.
      aggregator: 'sum' as const,
    })),
  );
  const whole: Registry<RegistryContentType> = AggregatorRegistry.aggregate(added);
  if (isOpen) whole.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  return { type: whole.contentType, body: await whole.metrics() };
}

/** Its types say a number, and it is a word. */
function isCounter({ type }: { readonly type: unknown }): boolean {
  return type === 'counter';
}

/** For the operating guide, where a test compares it. */
export function renderMetricsTable(): string {
  const rows = Object.entries(METRICS).map(([name, { type, help, labels }]) => {
    const named = labels.map((label) => `\`${label}\``).join(', ');
    return `| \`${name}\` | ${type} | ${named} | ${help} |`;
  });
  return ['| figure | kind | labels | what |', '|---|---|---|---|', ...rows].join('\n');
}
