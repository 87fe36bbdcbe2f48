/**
 * What is done about one run costs no more than this run: one that throws is quarantined (FAILED, with the cause), and its
 * partition goes on. Only where that fails as well, or what was decided stands in no commit, is the memory worth nothing.
 */
import type { LiveRun } from '../run/live-run.ts';
import type { PartitionPorts } from '../run/ports.ts';
import { runFields } from '../run/run-log.ts';

export interface RunBorderDependencies {
  readonly ports: Pick<PartitionPorts, 'warn' | 'broken'>;
  /** Whether all that is decided about the run stands in commits. */
  holdsAllOf(run: LiveRun): boolean;
  quarantine(run: LiveRun, cause: string): void;
}

export class RunBorder {
  readonly #dependencies: RunBorderDependencies;

  constructor(dependencies: RunBorderDependencies) {
    this.#dependencies = dependencies;
  }

  /** `undefined`: it has thrown. */
  run<T>(run: LiveRun, act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      this.failed(run, error);
      return undefined;
    }
  }

  failed(run: LiveRun, error: unknown): void {
    const { ports, holdsAllOf, quarantine } = this.#dependencies;
    ports.warn({ err: error, ...runFields(run) }, 'a fault in what is done about a run: the run is quarantined');
    try {
      if (!holdsAllOf(run)) throw new Error('what was decided stands in no commit', { cause: error });
      quarantine(run, `fault: ${error instanceof Error ? error.message : String(error)}`);
    } catch (second) {
      ports.broken(second);
    }
  }
}
