/** How the whole stands, asked of every scheduler: whichever answers names the others. */
import { type Bus, NoResponders, type SchedulerStatus, subjects } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';

/** A scheduler that takes longer is told as one that does not answer; a person waits for the whole. */
const ANSWER_MS_MAX = 3_000;

export interface ClusterStatus {
  readonly answered: readonly SchedulerStatus[];
  /** Members that did not answer in time. */
  readonly silent: readonly string[];
}

/** Throws `Unavailable` where no scheduler answers at all. */
export async function clusterStatus(bus: Pick<Bus, 'request'>): Promise<ClusterStatus> {
  const ask = (scheduler: string): Promise<SchedulerStatus> =>
    bus.request<null, SchedulerStatus>(subjects.status(scheduler), null, { timeoutMs: ANSWER_MS_MAX });
  let first: SchedulerStatus;
  try {
    first = await ask('any');
  } catch (cause) {
    const why = cause instanceof NoResponders ? 'none is connected to the broker' : 'none answered in 3 seconds';
    throw new Unavailable(`No scheduler answers (${why}).`, { cause });
  }
  const others = first.members.filter((member) => member !== first.scheduler);
  const answers = await Promise.all(others.map((member) => ask(member).catch(() => member)));
  return {
    answered: [first, ...answers.filter((answer) => typeof answer !== 'string')],
    silent: answers.filter((answer) => typeof answer === 'string'),
  };
}
