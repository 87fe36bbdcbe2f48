/** What clients are told of attempts: what never ran is neither counted nor told again (P12). */
import { publicEventsOf, viewOf, type PublicRunEvent, type RunEvent } from '@penstock/run';
import type { RunTruth } from './run-truth.ts';

/** `run` is as it was before the event. */
export function checkTold(run: RunTruth, event: RunEvent, fail: (rule: string, message: string) => void): void {
  for (const told of publicEventsOf(event, () => ({ text: '', truncated: false }))) checkOne(run, told, fail);
}

function checkOne(run: RunTruth, told: PublicRunEvent, fail: (rule: string, message: string) => void): void {
  if (!('attempt' in told) || told.attempt === 0) return;
  const stage = run.state.stages.get(run.state.stages.plan.indexOf.get(told.stage) ?? -1);
  // Each attempt that counts has failed before the next one begins.
  const number = (stage?.failures ?? 0) + 1;
  if (told.attempt !== number)
    fail('P12', `clients are told of attempt ${told.attempt} of ${told.stage}, which is its ${number}. execution`);
  if (told.type === 'stage_started') {
    const id = `${told.stage}#${told.attempt}`;
    if (run.told.has(id))
      fail('P12', `clients are told a second time that attempt ${told.attempt} of ${told.stage} begins`);
    run.told.add(id);
  } else if (viewOf(run.state).stages.find(({ name }) => name === told.stage)?.attempt !== told.attempt)
    fail('P12', `the view of ${told.stage} has another attempt than ${told.type} tells`);
}
