/**
 * Where requests to the owner of a partition arrive: each message becomes one call of the partition, which answers it in its own
 * time. What has a text to be read first (a run to be made, stages that a result adds) is called once that is read, elsewhere.
 *
 *  DESK-1 A request that fails in here has changed nothing, and costs nobody but its sender: what is changed about a run is guarded
 *     in the partition.
 */
import {
  type ApproveRequest,
  type AttemptRequest,
  type CancelRequest,
  type CreateRequest,
  type DecideRequest,
  type DeleteRequest,
  type GetRequest,
  type OpenRequest,
  type PauseRequest,
  type Responder,
  type ResultReply,
  type ResultRequest,
  type SchedulesRequest,
  type SetScheduleRequest,
  unpackText,
  type WaitsRequest,
  type WatchRequest,
} from '@penstock/bus';
import { PIPELINE_LIMITS, type ParseResult } from '@penstock/pipeline';
import { guarded } from '@penstock/telemetry/borders';
import type { Log } from '@penstock/telemetry/log';
import type { Partition } from '../partition/partition.ts';
import type { ReadAdded } from '../partition/results.ts';
import type { DefinitionSource } from '../run/definitions.ts';
import type { ReadAddedText } from './added-texts.ts';
import type { CreateIntake } from './create-intake.ts';

export interface RequestDeskOptions {
  /** Of the partition, for the log. */
  readonly number: number;
  readonly partition: Pick<
    Partition,
    | 'create'
    | 'cancel'
    | 'delete'
    | 'approve'
    | 'decide'
    | 'get'
    | 'watch'
    | 'waits'
    | 'setSchedule'
    | 'schedules'
    | 'pauseSchedule'
    | 'openRuns'
    | 'attempt'
    | 'addedOptions'
    | 'result'
  >;
  readonly intake: Pick<CreateIntake, 'take'>;
  readonly readAdded: ReadAddedText;
  readonly log: Pick<Log, 'warn' | 'error'>;
  /** The partition was called: when it wakes next may be another time. */
  readonly called: () => void;
}

export class RequestDesk {
  readonly #options: RequestDeskOptions;

  constructor(options: RequestDeskOptions) {
    this.#options = options;
  }

  take(body: unknown, call: Responder<unknown>): void {
    this.#guarded(call, () => this.#take(body, call))();
  }

  #take(body: unknown, call: Responder<unknown>): void {
    const { partition, called } = this.#options;
    const [, , verb, runner] = call.subject.split('.');
    const reply = (answer: unknown): void => call.answer(answer);
    switch (verb) {
      case 'create':
        this.#create(body as CreateRequest, call);
        break;
      case 'cancel':
        partition.cancel(body as CancelRequest, reply);
        break;
      case 'delete':
        partition.delete(body as DeleteRequest, reply);
        break;
      case 'approve':
        partition.approve(body as ApproveRequest, reply);
        break;
      case 'decide':
        partition.decide(body as DecideRequest, reply);
        break;
      case 'get':
        partition.get(body as GetRequest, reply);
        break;
      case 'watch':
        partition.watch(body as WatchRequest, reply);
        break;
      case 'waits':
        partition.waits(body as WaitsRequest, reply);
        break;
      case 'schedule':
        partition.setSchedule(body as SetScheduleRequest, reply);
        break;
      case 'schedules':
        partition.schedules(body as SchedulesRequest, reply);
        break;
      case 'pause':
        partition.pauseSchedule(body as PauseRequest, reply);
        break;
      case 'open':
        partition.openRuns(body as OpenRequest, reply);
        break;
      case 'attempt':
        partition.attempt(body as AttemptRequest, reply);
        break;
      case 'result':
        this.#result(body as ResultRequest, runner ?? '', call);
        break;
      default:
        call.fail();
    }
    called();
  }

  /** Its turn comes once its text has been read, on another thread where that takes a while. */
  #create(request: CreateRequest, call: Responder<unknown>): void {
    const { partition, intake, called } = this.#options;
    const decide = (source: DefinitionSource): void => {
      partition.create(request, (answer) => call.answer(answer), source);
      called();
    };
    intake.take(request, this.#guarded(call, decide));
  }

  /** What a result adds to its run is read before it is decided, on another thread where that takes a while. */
  #result(request: ResultRequest, runner: string, call: Responder<unknown>): void {
    const { partition, readAdded, log, called } = this.#options;
    const reply = (answer: ResultReply): void => call.answer(answer);
    const adds = request.added === undefined ? undefined : partition.addedOptions(request, runner);
    if (adds === undefined) {
      partition.result(request, runner, reply);
      return;
    }
    const decide = (added: ReadAdded): void => {
      partition.result(request, runner, reply, added);
      called();
    };
    const text = unpackText(request.added, PIPELINE_LIMITS.addedTextBytesMax);
    if (text === undefined) {
      decide({ text, meaning: undefined });
      return;
    }
    const decideRead = this.#guarded(call, (parsed: ParseResult) =>
      decide({ text, meaning: parsed.ok ? parsed.definition : undefined }),
    );
    readAdded(text, adds.options, adds.key).then(decideRead, (error: unknown) => {
      // Its runner sends it again.
      log.warn({ err: error, runId: request.runId }, 'what a stage adds could not be read; asked again');
    });
  }

  #guarded<Args extends unknown[]>(
    call: Responder<unknown>,
    callback: (...args: Args) => void,
  ): (...args: Args) => void {
    const { number: partition, log } = this.#options;
    return guarded('partition.request', { log, about: { partition }, failed: () => call.fail() }, callback);
  }
}
