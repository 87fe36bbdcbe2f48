/**
 * Grants and stops on their way to runners (P12 to P14). Owns, for each live attempt, whether its runner is known to
 * have the grant, and whether it is being stopped.
 *
 *  JOBS-1 Nothing is sent for a run while a commit about it is in flight, nor while the owner may not act (P4).
 *  JOBS-2 "No responders" frees a grant at no cost only as the answer to its first send, by the owner that committed it;
 *     only `refused` frees it otherwise. Anything else leaves it given: its session's lease decides.
 *  JOBS-3 A grant whose attempt is being stopped is sent no more; a stop is repeated until its attempt is gone.
 */
import { signSlip, type AttemptRef, type Job, type RunnerLease } from '@penstock/bus';
import { imageSecretsOf } from '@penstock/pipeline';
import {
  isTrusted,
  SERVICE_TENANT,
  triggerOf,
  workOf,
  type LiveAttempt,
  type StageWork,
  type Epoch,
  type RunId,
} from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';
import type { JobAnswer, PartitionPorts } from '../run/ports.ts';
import { runFields } from '../run/run-log.ts';
import { StageMap } from '../run/stage-map.ts';
import { JOB_REPEAT_MS } from '@penstock/bus';

/** Not sent by this owner yet: the boot clock may have begun a moment ago. */
const LONG_AGO = Number.NEGATIVE_INFINITY;

/** Sent again, or looked at, in one call: some milliseconds. */
const SENDS_AT_ONCE = 100;
const LOOKS_AT_ONCE = 2_000;

export interface JobDeliverySettings {
  readonly partition: number;
  readonly epoch: Epoch;
  readonly logBytesMax: number;
  /** Signs what runners are given secrets for (P31). */
  readonly slipKey?: string | undefined;
}

/** A stage may begin late and end slowly, and clocks differ. */
const SLIP_MARGIN_MS = 10 * 60_000;

interface Delivery {
  readonly run: LiveRun;
  readonly stage: string;
  readonly attempt: number;
  /** Whether this owner committed the grant; a successor may not conclude anything from "no responders". */
  readonly own: boolean;
  sends: number;
  acknowledged: boolean;
  sentAt: number;
}

export interface JobDeliveryHost {
  /** Whether a commit about the run is under way. */
  inFlight(run: LiveRun): boolean;
  /** The grant came to nothing: the machine decides. */
  returned(run: LiveRun, stage: string, attempt: number): void;
  /** The attempt was being stopped, and has ended without a result. */
  gone(run: LiveRun, stage: string, attempt: number, runner: string): void;
  /** The job can never be sent: its stage fails. */
  undeliverable(run: LiveRun, stage: string, attempt: number): void;
}

export class JobDeliveries {
  readonly #settings: JobDeliverySettings;
  readonly #ports: PartitionPorts;
  readonly #host: JobDeliveryHost;
  readonly #grants = new StageMap<Delivery>();
  readonly #stops = new StageMap<Delivery>();
  /** Where the repeating stands. */
  #round: Generator<boolean, undefined, number> | undefined;

  constructor(settings: JobDeliverySettings, ports: PartitionPorts, host: JobDeliveryHost) {
    this.#settings = settings;
    this.#ports = ports;
    this.#host = host;
  }

  /** A grant of this owner, its commit acknowledged. */
  grant(run: LiveRun, stage: string, attempt: number): void {
    const delivery = { run, stage, attempt, own: true, sends: 0, acknowledged: false, sentAt: LONG_AGO };
    this.#grants.set(run, stage, delivery);
    this.#sendGrant(delivery);
  }

  /** A grant of an earlier owner, found live at take-over: its session is asked again. */
  adopt(run: LiveRun, stage: string, attempt: number): void {
    this.#grants.set(run, stage, {
      run,
      stage,
      attempt,
      own: false,
      sends: 1,
      acknowledged: false,
      sentAt: LONG_AGO,
    });
  }

  stop(run: LiveRun, stage: string, attempt: number): void {
    const delivery = { run, stage, attempt, own: true, sends: 0, acknowledged: false, sentAt: LONG_AGO };
    this.#stops.set(run, stage, delivery);
    this.#sendStop(delivery);
  }

  /**
   * The runner's lease lists these attempts: they have arrived; one that is to stop is stopped again (P13). An attempt that
   * has ended here is stopped only by an owner who is sure to be it, and only if its end is committed: a successor's grant
   * looks the same to an owner that was frozen, and so does an end that never comes to be.
   */
  leaseLists(lease: RunnerLease, runOf: (runId: RunId) => LiveRun | undefined): void {
    for (const ref of lease.attempts) {
      const run = runOf(ref.runId);
      if (run === undefined) continue;
      const live = liveAttemptOf(run, ref.stage);
      const isIt = live?.attempt === ref.attempt && live.session === ref.session && live.credit === ref.credit;
      if (!isIt || live.runner !== lease.runner) {
        if (run.isCommitted) this.stopUnknown(lease.runner, ref);
        continue;
      }
      const grant = this.#grants.get(run, ref.stage);
      if (grant?.attempt === ref.attempt) grant.acknowledged = true;
      const stop = this.#stops.get(run, ref.stage);
      if (stop !== undefined) this.#sendStop(stop);
    }
  }

  /** A runner lists an attempt that its run, as it is committed, does not have. */
  stopUnknown(runner: string, { runId, stage, attempt, session, credit }: AttemptRef): void {
    const ref = { runId, stage, attempt, session, credit };
    if (this.#ports.mayAct()) this.#ports.sendStop(runner, { ...ref, reason: 'cancelled' }, () => {});
  }

  /** A round of `repeat` is under way. */
  get isBusy(): boolean {
    return this.#round !== undefined;
  }

  /**
   * Sends again what has had no answer; drops what is over. Called about every second, and while `isBusy` again at once: after a
   * take-over there may be a hundred thousand, of which each call sends some.
   */
  repeat(): void {
    const now = this.#ports.bootNow();
    this.#round ??= this.#repeating();
    for (let sends = 0, looks = 0; sends < SENDS_AT_ONCE && looks < LOOKS_AT_ONCE; looks++) {
      const { value: send, done } = this.#round.next(now);
      if (done === true) {
        this.#round = undefined;
        return;
      }
      if (send) sends += 1;
    }
  }

  /** One after the other; says whether it was sent again. It is told the present time at each step. */
  *#repeating(): Generator<boolean, undefined, number> {
    let now = this.#ports.bootNow();
    for (const grant of this.#grants.values()) {
      const isOver = grant.acknowledged || !this.#lives(grant);
      const isDue = !isOver && now - grant.sentAt >= JOB_REPEAT_MS;
      if (isOver) this.#grants.delete(grant.run, grant.stage);
      else if (isDue) this.#sendGrant(grant);
      now = yield isDue;
    }
    for (const stop of this.#stops.values()) {
      const isOver = !this.#lives(stop);
      const isDue = !isOver && !stop.acknowledged && now - stop.sentAt >= JOB_REPEAT_MS;
      if (isOver) this.#stops.delete(stop.run, stop.stage);
      else if (isDue) this.#sendStop(stop);
      now = yield isDue;
    }
  }

  #sendGrant(grant: Delivery): void {
    const live = liveAttemptOf(grant.run, grant.stage);
    if (live?.attempt !== grant.attempt || live.stopping !== undefined) return;
    if (!this.#ports.mayAct() || this.#host.inFlight(grant.run)) return;
    grant.sends += 1;
    grant.sentAt = this.#ports.bootNow();
    const first = grant.own && grant.sends === 1;
    const job = this.#jobOf(grant, live, !first);
    if (job === undefined) this.#host.undeliverable(grant.run, grant.stage, grant.attempt);
    else this.#ports.sendJob(live.runner, job, (answer) => this.#grantAnswered(grant, live, answer, first));
  }

  #grantAnswered(grant: Delivery, live: LiveAttempt, answer: JobAnswer, first: boolean): void {
    if (liveAttemptOf(grant.run, grant.stage)?.attempt !== live.attempt) return;
    if (answer === 'accepted' || answer === 'held') {
      grant.acknowledged = true;
    } else if (answer === 'refused' || (answer === 'no-responders' && first && grant.sends === 1)) {
      this.#grants.delete(grant.run, grant.stage);
      this.#host.returned(grant.run, grant.stage, grant.attempt);
    } else if (answer === 'too-large') {
      this.#host.undeliverable(grant.run, grant.stage, grant.attempt);
    }
  }

  #sendStop(stop: Delivery): void {
    const live = liveAttemptOf(stop.run, stop.stage);
    if (live?.attempt !== stop.attempt || live.stopping === undefined) return;
    if (!this.#ports.mayAct() || this.#host.inFlight(stop.run)) return;
    stop.sends += 1;
    stop.sentAt = this.#ports.bootNow();
    this.#ports.sendStop(live.runner, { ...refOf(stop, live), reason: live.stopping }, (answer) => {
      if (answer === 'stopping') stop.acknowledged = true;
      if (answer === 'gone' && liveAttemptOf(stop.run, stop.stage)?.attempt === stop.attempt) {
        this.#stops.delete(stop.run, stop.stage);
        this.#host.gone(stop.run, stop.stage, stop.attempt, live.runner);
      }
    });
  }

  #lives(delivery: Delivery): boolean {
    return liveAttemptOf(delivery.run, delivery.stage)?.attempt === delivery.attempt;
  }

  /** Undefined: it can never be sent. Whatever a run's values are, they must not stop what is sent for other runs. */
  #jobOf(grant: Delivery, live: LiveAttempt, repeated: boolean): Job | undefined {
    const { run, stage } = grant;
    const { partition, epoch, logBytesMax } = this.#settings;
    const { key, pipelineName, origin } = run.state;
    try {
      const work = workOf(run.state, run.plan, stage);
      return {
        ...refOf(grant, live),
        partition,
        epoch,
        key,
        pipelineName,
        origin,
        ...work,
        ...this.#slipsOf(grant, live, work),
        logBytesMax,
        repeated,
      };
    } catch (error) {
      this.#ports.warn(
        { err: error, ...runFields(run), stage, attempt: grant.attempt },
        'a job cannot be made; its stage fails',
      );
      return undefined;
    }
  }

  /** P31. Sent after the grant's commit was acknowledged, as all of the job. */
  #slipsOf(
    { run, stage }: Delivery,
    live: LiveAttempt,
    work: StageWork,
  ): { readonly slip?: string; readonly cloneSlip?: string } {
    const { slipKey } = this.#settings;
    const { secrets = [], idTokens = [], place } = work;
    const names = new Set([...secrets.map(({ name }) => name), ...imageSecretsOf(place)]);
    const wantsSlip = names.size + idTokens.length > 0 && slipKey !== undefined;
    const { tenant, pipelineName, origin, lineage } = run.state;
    const { provider, repository, ref, commit, actor, cloneUrl } = origin;
    // The connected repository of a user; what else is read is read with what the server has.
    const isConnected = tenant !== SERVICE_TENANT && repository !== undefined && commit !== undefined;
    if (!wantsSlip && (!isConnected || cloneUrl === undefined)) return {};
    const about = {
      run: run.id,
      stage,
      attempt: live.attempt,
      runner: live.runner,
      session: live.session,
      tenant,
      pipeline: pipelineName,
      trusted: isTrusted(origin),
      ...(lineage?.edited === true ? { edited: true as const } : {}),
      // Whoever asked for a run of a repository's ref chose that ref, as who pushes one does.
      trigger: origin.kind === 'api' && ref !== undefined ? 'dispatch' : triggerOf(origin),
      provider,
      repository,
      ref,
      commit,
      actor,
      until: this.#ports.now() + work.timeoutMs + SLIP_MARGIN_MS,
    };
    const audiences = new Set(idTokens.map(({ audience }) => audience));
    return {
      ...(wantsSlip
        ? {
            slip: signSlip(slipKey, {
              ...about,
              names: [...names],
              ...(audiences.size === 0 ? {} : { audiences: [...audiences] }),
            }),
          }
        : {}),
      ...(isConnected && cloneUrl !== undefined
        ? { cloneSlip: signSlip(slipKey, { ...about, names: [], cloneUrl }) }
        : {}),
    };
  }
}

export function liveAttemptOf(run: LiveRun, stage: string): LiveAttempt | undefined {
  return run.state.stages.get(run.plan.indexOf.get(stage) ?? -1)?.live;
}

function refOf({ run, stage, attempt }: Delivery, live: LiveAttempt): AttemptRef {
  return { runId: run.id, stage, attempt, session: live.session, credit: live.credit };
}
