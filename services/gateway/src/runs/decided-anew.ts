/** A run without stages runs again: the delivery that it came of is decided anew (P30), by the webhook ingest, which has it. */
import { backoffMs, bootMs, pauseOrAbort } from '@penstock/async';
import type { Bus, IngestCalls } from '@penstock/bus';
import { BadUserInput, Conflict, NotFound, Unavailable } from '@penstock/errors';
import type { RunView } from '@penstock/run';
import type { RunReads } from '@penstock/run-client';
import { callService } from '@penstock/service';
import type { RerunArguments } from './rerun.ts';

/** Asking the ingest, and then waiting for the run: its repository may have to be fetched. */
const REPLAY_MS_MAX = 20_000;
const RUN_MS_MAX = 60_000;
const LOOK = { firstMs: 100, maxMs: 2_000 } as const;

export interface DecidedAnew {
  /** The run of which nothing came. */
  readonly view: RunView;
  /** The new one. */
  readonly runId: string;
  readonly actor: string;
}

/** Throws `BadUserInput`: what runs again in such a run, and with what, its repository says. */
export function refusePartsOf(view: RunView, { from, onlyFailed, inputs, yaml }: RerunArguments): void {
  const given = Object.entries({ from, onlyFailed, inputs, yaml }).flatMap(([name, value]) =>
    value == null || value === false || (Array.isArray(value) && value.length === 0) ? [] : [`'${name}'`],
  );
  if (given.length > 0)
    throw new BadUserInput(
      `The run '${view.id}' has no stages: its delivery is decided anew, and the file that its repository has decides. Leave out ${given.join(', ')}.`,
    );
}

/** Resolves once the new run is there. Throws `Conflict` where there is no delivery to decide about. */
export async function decideAnew(
  { bus, reads }: { readonly bus: Bus; readonly reads: RunReads },
  { view, runId, actor }: DecidedAnew,
  signal: AbortSignal,
): Promise<RunView> {
  const repeats = { run: view.id, runId, actor };
  await callService<IngestCalls['replay']['request'], IngestCalls['replay']['answer']>(
    bus,
    'webhook-ingest',
    'replay',
    { id: view.id, tenants: [view.tenant], dryRun: false, repeats },
    REPLAY_MS_MAX,
  ).catch((error: unknown) => {
    if (!(error instanceof NotFound)) throw error;
    throw new Conflict(
      `The run '${view.id}' has no stages, and no delivery that could be decided anew: trigger the pipeline, or have its host deliver the push again.`,
      {},
      { cause: error },
    );
  });
  const until = bootMs() + RUN_MS_MAX;
  for (let looked = 1; !signal.aborted; looked++) {
    const run = await reads.view(runId, [view.tenant]);
    if (run !== null) return run;
    if (bootMs() > until) break;
    await pauseOrAbort(backoffMs(looked, LOOK), signal);
  }
  throw new Unavailable(
    'The delivery is being decided; its run is not there yet. Repeating with this run id is safe.',
    { runId },
  );
}
