/**
 * Requests that decide about one run: cancel it, decide a gate of it, end an attempt of it. Answered once what they decided is
 * committed (PARTITION-1). Owns nothing.
 */
import type {
  CancelReply,
  CancelRequest,
  DecideReply,
  DecideRequest,
  OwnerRefusal,
  ResultReply,
  ResultRequest,
} from '@penstock/bus';
import { viewOf, type AddedTextOptions, type RunId } from '@penstock/run';
import type { Dispatch } from '../dispatch/dispatch.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { CommitCycle } from './commit-cycle.ts';
import type { Decisions } from './decisions.ts';
import { faultOf } from './gate-decisions.ts';
import type { Parking } from './parking.ts';
import type { PartitionSettings } from './partition-settings.ts';
import type { Reads } from './reads.ts';
import { refusal } from './refusals.ts';
import { addedOptionsOf, awaitsResult, expireMsOf, resultCommand, sizedAdded, type ReadAdded } from './results.ts';

export interface RunRequestsHost {
  readonly settings: Pick<PartitionSettings, 'epoch' | 'member' | 'artifactExpireMs'>;
  readonly runs: ReadonlyMap<RunId, LiveRun>;
  readonly parking: Pick<Parking, 'find' | 'bringBack'>;
  readonly dispatch: Pick<Dispatch, 'addCredits'>;
  readonly cycle: Pick<CommitCycle, 'whenCommitted'>;
  readonly reads: Pick<Reads, 'whenCommitted'>;
  readonly decisions: Pick<Decisions, 'at' | 'decide'>;
  /** Its document is damaged, and nothing more is decided of it. */
  isLeftOut(runId: RunId): boolean;
  bootNow(): number;
  /** Whether the partition still decides. */
  accepts(): boolean;
  /** Whether it is sure to be the owner (P4). */
  mayAnswer(): boolean;
  advance(): void;
}

export class RunRequests {
  readonly #host: RunRequestsHost;

  constructor(host: RunRequestsHost) {
    this.#host = host;
  }

  cancel(request: CancelRequest, reply: (reply: CancelReply) => void): void {
    const { settings, runs, parking, cycle, reads, decisions } = this.#host;
    if (!this.#host.accepts()) return;
    if (request.tenants.includes(parking.find(request.runId)?.tenant ?? '')) {
      this.#cancelParked(request, reply);
      return;
    }
    const run = runs.get(request.runId);
    if (run === undefined || !request.tenants.includes(run.state.tenant)) {
      // What is not here is a read like any other: an owner that was frozen may have missed the run (P4).
      if (this.#host.mayAnswer()) reply(this.#notHere(request.runId));
      return;
    }
    if (run.ended) {
      reads.whenCommitted(run, () =>
        reply(refusal(settings.epoch, 'CONFLICT', `the run has ended: ${run.state.status}`)),
      );
      return;
    }
    decisions.decide(run, { type: 'cancel', at: decisions.at(run) });
    cycle.whenCommitted(run, () => {
      const state = run.committedState();
      reply({ ok: true, epoch: settings.epoch, cancelledStages: state.cancelledStages ?? 0, run: viewOf(state) });
    });
    this.#host.advance();
  }

  /** It comes back to be cancelled; what did not come is asked for again by whoever cancels. */
  #cancelParked(request: CancelRequest, reply: (reply: CancelReply) => void): void {
    this.#host.parking.bringBack(request.runId, (isThere) => {
      if (isThere) this.cancel(request, reply);
    });
  }

  /** Somebody approves or rejects a stage (P26). */
  decideGate(request: DecideRequest, reply: (reply: DecideReply) => void): void {
    const { runs, cycle, reads, decisions } = this.#host;
    if (!this.#host.accepts()) return;
    const { epoch } = this.#host.settings;
    const run = runs.get(request.runId);
    if (run === undefined) {
      if (this.#host.mayAnswer()) reply(this.#notHere(request.runId));
      return;
    }
    const fault = faultOf(run, request);
    if (fault === undefined) {
      const { stage, decision, comment, person } = request;
      const given = { stage, decision, comment, person: person.id, by: person.by };
      decisions.decide(run, { type: 'decide-gate', at: decisions.at(run), ...given });
      cycle.whenCommitted(run, () => reply({ ok: true, epoch, run: viewOf(run.committedState()) }));
    } else reads.whenCommitted(run, () => reply(refusal(epoch, fault.code, fault.message)));
    this.#host.advance();
  }

  /** Of whom one is that was left out nobody here knows: who asked on somebody's behalf finds that out. */
  #notHere(runId: RunId): OwnerRefusal {
    const { epoch } = this.#host.settings;
    return this.#host.isLeftOut(runId)
      ? refusal(epoch, 'CONFLICT', 'its document in the store is damaged; it can be deleted')
      : refusal(epoch, 'NOT_FOUND', 'there is no such run');
  }

  /** How what the result adds to its run is to be read before it is decided, and for whom; undefined: it adds nothing. */
  addedOptions(
    request: ResultRequest,
    runner: string,
  ): { readonly options: AddedTextOptions; readonly key: string } | undefined {
    const run = this.#host.runs.get(request.runId);
    const options = run && addedOptionsOf(run, request, runner);
    return run === undefined || options === undefined ? undefined : { options, key: run.state.key };
  }

  /** `added`: what it adds to its run. */
  result(request: ResultRequest, runner: string, reply: (reply: ResultReply) => void, added?: ReadAdded): void {
    const { settings, runs, dispatch, cycle, decisions } = this.#host;
    if (!this.#host.accepts()) return;
    const { epoch, member } = settings;
    const { offer } = request;
    const offerTaken = offer?.scheduler === member;
    if (offerTaken)
      dispatch.addCredits(this.#host.bootNow(), { runner, session: request.session, credits: [offer.credit] });
    const run = runs.get(request.runId);
    if (run !== undefined && awaitsResult(run, request, runner)) {
      const expireMs = expireMsOf(run, request.stage, settings.artifactExpireMs);
      const joining = added === undefined ? undefined : sizedAdded(run, added);
      decisions.decide(run, resultCommand(request, decisions.at(run), expireMs, joining));
      cycle.whenCommitted(run, () => reply({ ok: true, answer: 'committed', epoch, offerTaken }));
    } else {
      // Said only by an owner that is sure to be the owner, and only of what is committed (P7).
      const answer = (): void => {
        if (this.#host.mayAnswer()) reply({ ok: true, answer: 'obsolete', epoch, offerTaken });
      };
      if (run === undefined) answer();
      else cycle.whenCommitted(run, answer);
    }
    this.#host.advance();
  }
}
