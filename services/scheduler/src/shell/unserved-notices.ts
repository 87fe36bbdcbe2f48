/** Says in the log which stages no runner could ever take: once for each set of labels, and again when it is so again. */
import type { Least } from '@penstock/pipeline';
import type { Log } from '@penstock/telemetry/log';

export interface Unserved {
  readonly labels: readonly string[];
  readonly least: Least | undefined;
  readonly count: number;
}

/** Files may ask for any number of sets. */
const TOLD_MAX = 100;

export class UnservedNotices {
  readonly #log: Pick<Log, 'warn'>;
  /** As it was told last. */
  #told: ReadonlySet<string> = new Set();

  constructor(log: Pick<Log, 'warn'>) {
    this.#log = log;
  }

  /** Called about every second with all that wait so. */
  tell(unserved: Iterable<Unserved>): void {
    const known = this.#told;
    const first = [...Iterator.from(unserved).take(TOLD_MAX)].map((each) => ({
      ...each,
      id: JSON.stringify([each.labels, each.least]),
    }));
    this.#told = new Set(first.map(({ id }) => id));
    for (const { id, labels, least, count } of first)
      if (!known.has(id))
        this.#log.warn(
          { labels, least, stages: count },
          'stages wait for a runner that there is not: none has these labels, and as much of its machine',
        );
  }
}
