/**
 * People at the gates of runs: some approve, some reject, some do nothing until the gate ends by itself, some say it twice at once,
 * and some say two things at once. The account has what each was answered; whether that is true is the checker's to say.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../../support/random.ts';
import type { RunAnswer } from '../api.ts';
import type { ChaosPipeline, ChaosStage } from '../pipelines.ts';
import type { Decision, GateAnswer } from '../steered.ts';
import type { Approver, Client } from './client.ts';

interface Say {
  readonly approver: Approver;
  readonly decision: Decision;
}

const LOOK_MS = 400;
/** Of the gates that wait only for a moment. */
const NOBODY_SHARE = 0.4;
const MOMENT_SECS = 5;
const REJECT_SHARE = 0.2;
const RACE_SHARE = 0.25;
const TWICE_SHARE = 0.3;
/** So that faults fall between the gate and its decision too. */
const THINKING_MS_MAX = 1_500;

export class GateLoad {
  readonly answers: GateAnswer[] = [];
  readonly #client: Client;
  readonly #approvers: readonly Approver[];
  /** Whoever has the key is one person. */
  readonly #keyHolder: Approver;

  constructor(client: Client, approvers: readonly Approver[]) {
    this.#client = client;
    this.#approvers = approvers;
    this.#keyHolder = { person: 'api-key', name: '', api: client.api };
  }

  /** Until every gate of the run is decided, or over. */
  async decideAll(runId: string, pipeline: ChaosPipeline, random: Random): Promise<void> {
    for (const stage of pipeline.stages) if (stage.gate !== undefined) await this.#decide(runId, stage, random);
  }

  async #decide(runId: string, stage: ChaosStage, random: Random): Promise<void> {
    const isShort = (stage.gate?.timeoutSecs ?? 0) < MOMENT_SECS;
    if ((isShort && random.chance(NOBODY_SHARE)) || !(await this.#isOpen(runId, stage.name))) return;
    await pause(random.next() * THINKING_MS_MAX);
    const said = this.#sayingsOf(stage, random);
    const twice = random.chance(TWICE_SHARE) ? said.slice(0, 1) : [];
    await Promise.all([...said, ...twice].map((say) => this.#send(runId, stage.name, say, random)));
  }

  #sayingsOf({ gate }: ChaosStage, random: Random): Say[] {
    const people = gate?.named === true ? this.#approvers : [this.#keyHolder];
    const one = random.pick(people);
    const other = people.find((each) => each !== one) ?? one;
    if (random.chance(RACE_SHARE))
      return [
        { approver: one, decision: 'approved' },
        { approver: other, decision: 'rejected' },
      ];
    if (random.chance(REJECT_SHARE)) return [{ approver: one, decision: 'rejected' }];
    const needed = gate?.quorum === 2 ? [one, other] : [one];
    return needed.map((approver) => ({ approver, decision: 'approved' }));
  }

  /** False: it is over, or nobody came to it. */
  async #isOpen(runId: string, stage: string): Promise<boolean> {
    const { api, givenUp } = this.#client;
    for (; !givenUp.aborted; await pause(LOOK_MS)) {
      const outcome = await api.run(runId);
      if (!outcome.ok) this.#client.judge(runId, 'run', outcome);
      else if (outcome.value === null) return false;
      else {
        const status = statusOf(outcome.value, stage);
        if (status === 'QUEUED') return true;
        if (status !== 'PENDING' || isOver(outcome.value)) return false;
      }
    }
    return false;
  }

  async #send(runId: string, stage: string, { approver, decision }: Say, random: Random): Promise<void> {
    const { clocksStepped, givenUp } = this.#client;
    const answer: GateAnswer = { runId, stage, person: approver.person, decision, sends: 0, outcome: 'unknown' };
    this.answers.push(answer);
    for (; !givenUp.aborted; await this.#client.beforeRepeat(random)) {
      answer.sends += 1;
      const outcome = await approver.api.decide(decision, runId, stage);
      if (outcome.ok) {
        answer.outcome = 'taken';
        answer.status = outcome.value.status;
        return;
      }
      if (outcome.code === 'CONFLICT') {
        answer.outcome = 'refused';
        return;
      }
      if (outcome.code === 'UNAUTHENTICATED' && clocksStepped) continue;
      this.#client.judge(runId, `${decision} of ${stage}`, outcome);
      if (outcome.failure === 'refused') return;
    }
  }
}

function statusOf({ stages }: RunAnswer, name: string): string {
  return stages.find((stage) => stage.name === name)?.status ?? 'none';
}

function isOver({ status }: RunAnswer): boolean {
  return status !== 'PENDING' && status !== 'QUEUED' && status !== 'RUNNING';
}
