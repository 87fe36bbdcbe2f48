/** Whether what came in by the other doors is as it was promised: a pure function of the account and the journal. */
import type { JournaledRun } from '../journal.ts';
import { isOver } from '../journal.ts';
import type { Violation, ViolationKind } from '../violations.ts';
import type { DeliveryAccount } from './deliveries.ts';
import type { DoorAccount } from './door-load.ts';
import type { LoginAccount } from './logins.ts';
import type { PublishAccount } from './publishes.ts';

type Report = (kind: ViolationKind, runId: string, detail: string) => void;

export function checkDoors(account: DoorAccount, runs: ReadonlyMap<string, JournaledRun>): Violation[] {
  const violations: Violation[] = [];
  const report: Report = (kind, runId, detail) => void violations.push({ kind, runId, detail });
  checkDeliveries(account.deliveries, runs, report);
  checkPublishes(account.publishes, report);
  checkLogins(account.logins, report);
  return violations;
}

/** P24: one run for each delivery that was answered, whichever of its answers one reads; none for what was never sent. */
function checkDeliveries(
  { prefix, answered, unanswered, refused }: DeliveryAccount,
  runs: ReadonlyMap<string, JournaledRun>,
  report: Report,
): void {
  for (const detail of refused) report('answer', '', `the delivery ${detail}`);
  const created = Map.groupBy(
    [...runs.values()].flatMap((run) => {
      const [first] = run.events;
      return first?.type === 'run_created' && first.origin.deliveryId?.startsWith(prefix) === true
        ? [{ run, deliveryId: first.origin.deliveryId }]
        : [];
    }),
    ({ deliveryId }) => deliveryId,
  );
  for (const [deliveryId, made] of created) {
    if (made.length > 1)
      report('doubled', made[1]?.run.id ?? '', `${made.length} runs are of the delivery ${deliveryId}`);
    if (!answered.has(deliveryId) && !unanswered.has(deliveryId))
      report('untrue', made[0]?.run.id ?? '', `it is of the delivery ${deliveryId}, which nobody sent`);
  }
  for (const [deliveryId, named] of answered) {
    const [runId = ''] = named;
    if (named.size > 1) report('doubled', runId, `${deliveryId} was answered with the runs ${[...named].join(', ')}`);
    const run = runs.get(runId);
    if (run === undefined)
      report('lost', runId, `the delivery ${deliveryId} was accepted, and its run is in no journal`);
    else if (!isOver(run)) report('unfinished', runId, `the run of the delivery ${deliveryId}`);
  }
}

function checkPublishes({ accepted, listed, spoiled, refused }: PublishAccount, report: Report): void {
  for (const detail of refused) report('answer', '', `a publication was refused: ${detail}`);
  for (const hash of spoiled) report('lost', '', `the package ${hash} was published, and its bytes are not to be had`);
  const byName = Map.groupBy(listed, ([name]) => name);
  for (const [name, hash] of accepted) {
    const found = byName.get(name) ?? [];
    if (found.length === 0) report('lost', '', `${name} was published, and is not there`);
    if (found.length > 1) report('doubled', '', `${name} is there ${found.length} times`);
    for (const [, other] of found)
      if (other !== hash) report('untrue', '', `${name} was published as ${hash}, and is ${other}`);
  }
}

function checkLogins({ sessions }: LoginAccount, report: Report): void {
  for (const { login, state, broken, works } of sessions) {
    for (const detail of broken) report('answer', '', `the session of ${login}: ${detail}`);
    if (state === 'in' && works !== undefined && !(works.access && works.refresh))
      report('lost', '', `the session of ${login} does not work any more: ${JSON.stringify(works)}`);
    if (state === 'out' && (works?.access === true || works?.refresh === true))
      report('answer', '', `${login} logged out, and the session works: ${JSON.stringify(works)}`);
  }
}
