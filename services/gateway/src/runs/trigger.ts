/** `triggerPipeline`: checks the file, creates the run durably, waits a while for its end, and answers with it as it stands. */
import { randomBytes } from 'node:crypto';
import { quoted, resolveInputs, type ParseResult } from '@penstock/pipeline';
import type { LockEntry } from '@penstock/extension';
import type { RunLimits } from '@penstock/config';
import { RUN_ID_AHEAD_MS, type CreateRequest, type RepositoryFile } from '@penstock/bus';
import {
  isEnded,
  isRunId,
  keyOf,
  newRunId,
  reachOf,
  repositoryOfReach,
  runIdFitsKey,
  runIdTime,
  SERVICE_TENANT,
  summaryOf,
  type RepositoryReach,
  type RunCreated,
  type RunSummary,
  type RunView,
} from '@penstock/run';
import { grantedReaches, requireWriter, tenantOfUser, type AccessRole, type Caller } from '@penstock/identity';
import { BadUserInput, Conflict, Forbidden, NotFound, Unavailable } from '@penstock/errors';
import { CheckedFiles, type CheckedFile } from './checked-files.ts';
import { refusePartsOf, type DecidedAnew } from './decided-anew.ts';
import { wishOf, type RepeatedRun, type RerunArguments } from './rerun.ts';
import type { UsesResolver } from './extensions.ts';
import { type Owners, type RunEndSources, type RunReads, waitForRunEnd } from '@penstock/run-client';

export interface TriggerArguments {
  readonly yaml: string | null | undefined;
  /** Seconds, 0 to 300. */
  readonly waitSeconds?: number | null | undefined;
  readonly runId?: string | null | undefined;
  readonly priority?: number | null | undefined;
  readonly lock?: readonly LockEntry[] | null | undefined;
  readonly inputs?: readonly { readonly key: string; readonly value: string }[] | null | undefined;
}

export interface DispatchArguments extends Pick<TriggerArguments, 'waitSeconds' | 'runId' | 'inputs'> {
  readonly provider?: string | null | undefined;
  readonly repository?: string | null | undefined;
  readonly ref?: string | null | undefined;
}

export interface TriggerResult {
  readonly run: RunView;
  readonly summary: RunSummary;
}

export interface TriggerSettings {
  readonly waitSecs: number;
  readonly waitsMax: number;
  readonly now: () => number;
  /** The limits of the tier that the caller's runs count against; undefined: there are none. */
  readonly limitsOf: (caller: Caller) => RunLimits | undefined;
  /** That of a user's tenant. */
  readonly tierOf: (tenant: string) => Promise<string>;
  readonly uses: UsesResolver;
  /** The file of a repository, for a caller who may have it run. */
  readonly fileOf: (caller: Caller, asked: DispatchArguments) => Promise<RepositoryFile>;
  /** A run that the caller may have run again. */
  readonly runToRepeat: (caller: Caller, id: string | null | undefined) => Promise<RepeatedRun>;
  /** What a run began with; null: it is gone. */
  readonly createdOf: (view: RunView) => Promise<RunCreated | null>;
  /** The run that comes of the delivery of one without stages, once it is there. */
  readonly decideAnew: (asked: DecidedAnew, signal: AbortSignal) => Promise<RunView>;
  /** Called for each call by somebody who may have runs. */
  readonly onAsked?: (() => void) | undefined;
  /** Called with a file that has been read, and uses no extension, before its run is asked for. */
  readonly onRead?: ((text: string, read: ParseResult) => void) | undefined;
}

/** Whether a run may have come of a request. */
type Repeats = (created: RunCreated) => boolean | Promise<boolean>;

/** The `source` of a file that is not the repository's. */
const SERVER_TEMPLATE = 'server_template';
const WAIT_SECS_MAX = 300;
const PRIORITY_MAX = 1_000;

export class Trigger {
  readonly #sources: RunEndSources;
  readonly #owners: Owners;
  readonly #reads: RunReads;
  readonly #settings: TriggerSettings;
  readonly #files: CheckedFiles;
  readonly #waits = new Set<AbortController>();

  constructor(sources: RunEndSources, settings: TriggerSettings) {
    this.#sources = sources;
    this.#owners = sources.owners;
    this.#reads = sources.reads;
    this.#settings = settings;
    this.#files = new CheckedFiles({ uses: settings.uses, onRead: settings.onRead });
  }

  /** Those that wait for a run's end answer now; the server is stopping. */
  stopWaiting(): void {
    for (const wait of this.#waits) wait.abort();
  }

  /** `clientGone` ends the waiting; the run goes on. */
  async trigger(caller: Caller, input: TriggerArguments, clientGone: AbortSignal): Promise<TriggerResult> {
    return await sayingRunId(input.runId, () => this.#trigger(caller, input, clientGone));
  }

  async #trigger(caller: Caller, input: TriggerArguments, clientGone: AbortSignal): Promise<TriggerResult> {
    const tenant = requireWriter(caller);
    this.#settings.onAsked?.();
    const waitMs = waitMsOf(input.waitSeconds ?? this.#settings.waitSecs);
    const priority = priorityOf(input.priority, caller);
    const yaml = input.yaml;
    if (yaml === null || yaml === undefined)
      throw new BadUserInput("The argument 'yaml' is missing: it holds the text of the pipeline file.");
    const { file, extensions } = await this.#files.check(caller, yaml, input.lock ?? undefined, tenant);
    const key = keyOf({ tenant, pipelineName: file.name });
    const { given: inputs, values } = givenInputs(file, input.inputs ?? []);
    const runId = this.#runIdOf(input.runId, key);
    const limits = this.#settings.limitsOf(caller);
    const request: CreateRequest = {
      runId,
      tenant,
      key,
      yaml,
      origin: { kind: 'api', actor: caller.user?.email ?? caller.kind },
      ...(inputs.length === 0 ? {} : { inputs }),
      ...(priority === undefined ? {} : { priority }),
      ...(limits === undefined ? {} : { limits }),
      ...(extensions.length === 0 ? {} : { extensions }),
    };
    const repeats = (created: RunCreated): boolean => created.yaml === yaml && areEqual(created.inputs ?? {}, values);
    const create = (): Promise<TriggerResult> => this.#created(request, input.runId == null ? undefined : repeats);
    return await this.#run({ runId, tenant }, create, waitMs, clientGone);
  }

  /** The run of a repository's own file: as `trigger`, where the ingest has read it. */
  async dispatch(caller: Caller, input: DispatchArguments, clientGone: AbortSignal): Promise<TriggerResult> {
    return await sayingRunId(input.runId, () => this.#dispatch(caller, input, clientGone));
  }

  async #dispatch(caller: Caller, input: DispatchArguments, clientGone: AbortSignal): Promise<TriggerResult> {
    const tenant = requireWriter(caller);
    this.#settings.onAsked?.();
    const waitMs = waitMsOf(input.waitSeconds ?? this.#settings.waitSecs);
    // A run that is there is answered as it is: its branch may have moved since.
    const granted = grantedRepository(caller, input);
    const readers = granted === null ? [tenant] : [tenant, reachOf(granted)];
    const known = isRunId(input.runId ?? '') ? await this.#reads.view(input.runId ?? '', readers) : null;
    const given = input.inputs ?? [];
    const repeats = (created: RunCreated): Promise<boolean> => this.#hasInputs(created, given);
    if (known !== null) {
      if (!isDispatchOf(known, input)) throw new BadUserInput(`The run id ${known.id} belongs to another run.`);
      const find = async (): Promise<TriggerResult> => {
        await this.#assertSame(known, repeats);
        return resultOf(known);
      };
      return await this.#run({ runId: known.id, tenant: known.tenant }, find, waitMs, clientGone);
    }
    const file = await this.#settings.fileOf(caller, input).catch(async (error: unknown) => {
      // What the caller has connected itself goes before what others let it do.
      if (caller.user === undefined || !(error instanceof NotFound)) throw error;
      if (granted === null) throw reachesOf(caller, 'read', input).length === 0 ? error : mayOnlyRead(input);
      const id = granted.tenant.slice(tenantOfUser('').length);
      return await this.#settings.fileOf({ ...caller, user: { ...caller.user, id } }, input);
    });
    const { yaml, extensions, key, provider, repository, ref, commit, source, cloneUrl, trusted, defaultBranch } = file;
    const read = await this.#files.checkResolved(yaml, extensions, file.tenant, source === SERVER_TEMPLATE);
    const { given: inputs } = givenInputs(read, given);
    const runId = this.#runIdOf(input.runId, key);
    const limits = await this.#limitsAt(caller, file.tenant);
    const actor = caller.user?.email ?? caller.kind;
    const request: CreateRequest = {
      runId,
      tenant: file.tenant,
      key,
      yaml,
      origin: { kind: 'api', actor, provider, repository, ref, commit, source, cloneUrl, trusted, defaultBranch },
      ...(inputs.length === 0 ? {} : { inputs }),
      ...(limits === undefined ? {} : { limits }),
      ...(extensions.length === 0 ? {} : { extensions }),
    };
    const create = (): Promise<TriggerResult> => this.#created(request, input.runId == null ? undefined : repeats);
    return await this.#run({ runId, tenant: file.tenant }, create, waitMs, clientGone);
  }

  /** A new run of one that is there: as `trigger`, with what that one had where nothing else is given (P30). */
  async rerun(caller: Caller, input: RerunArguments, clientGone: AbortSignal): Promise<TriggerResult> {
    return await sayingRunId(input.runId, () => this.#rerun(caller, input, clientGone));
  }

  async #rerun(caller: Caller, input: RerunArguments, clientGone: AbortSignal): Promise<TriggerResult> {
    const { view, created } = await this.#settings.runToRepeat(caller, input.id);
    const isOfAnother = view.tenant !== caller.writeTenant && view.tenant !== SERVICE_TENANT;
    // Another file would be given what the tenant gives to its own.
    if (isOfAnother && input.yaml != null && input.yaml !== created.yaml)
      throw new Forbidden(
        'A run of another’s repository runs again with its own file only: push the change to the repository instead.',
      );
    const wish = wishOf(input);
    const waitMs = waitMsOf(input.waitSeconds ?? this.#settings.waitSecs);
    const { tenant, key } = view;
    const actor = caller.user?.email ?? caller.kind;
    if (created.yaml === '') {
      refusePartsOf(view, input);
      const asked = { view, runId: this.#runIdOf(input.runId, key), actor };
      const create = async (): Promise<TriggerResult> =>
        repeatOf(view.id, await this.#settings.decideAnew(asked, clientGone));
      return await this.#run({ runId: asked.runId, tenant }, create, waitMs, clientGone);
    }
    const { yaml, extensions } = await this.#fileOfRerun(caller, view, created, input.yaml);
    const inputs = [...inputsByName(input.inputs ?? [])];
    const runId = this.#runIdOf(input.runId, key);
    // The tier of whoever helps out is not that of the tenant `service`.
    const limits = await this.#limitsAt(caller, tenant);
    const request: CreateRequest = {
      runId,
      tenant,
      key,
      yaml,
      origin: { kind: 'api', actor },
      rerun: { parent: view.id, ...wish },
      ...(inputs.length === 0 ? {} : { inputs }),
      ...(limits === undefined ? {} : { limits }),
      ...(extensions.length === 0 ? {} : { extensions }),
    };
    const repeats = async (made: RunCreated): Promise<boolean> =>
      made.yaml === yaml && (await this.#hasInputs(made, input.inputs ?? [], created.inputs));
    const create = (): Promise<TriggerResult> => this.#repeated(request, input.runId == null ? undefined : repeats);
    return await this.#run({ runId, tenant }, create, waitMs, clientGone);
  }

  /** A run counts in its own tenant, whoever has wished it. */
  async #limitsAt(caller: Caller, tenant: string): Promise<CreateRequest['limits']> {
    const { user } = caller;
    if (tenant === SERVICE_TENANT) return this.#settings.limitsOf({ ...caller, user: undefined });
    if (tenant === caller.writeTenant || user === undefined) return this.#settings.limitsOf(caller);
    return this.#settings.limitsOf({ ...caller, user: { ...user, tier: await this.#settings.tierOf(tenant) } });
  }

  /** What the owner says of the run that is repeated is said of that one, not of the new one. */
  async #repeated(request: CreateRequest, repeats: Repeats | undefined): Promise<TriggerResult> {
    const parent = request.rerun?.parent ?? '';
    const reply = await this.#owners.create(request).catch((error: unknown) => {
      const about = `The run '${parent}' cannot run again`;
      if (error instanceof Conflict) throw new Conflict(`${about}: ${error.message}.`, {}, { cause: error });
      if (error instanceof BadUserInput) throw new BadUserInput(`${about}: ${error.message}.`, {}, { cause: error });
      throw error;
    });
    const run = reply.run ?? (await this.#reads.view(request.runId, [request.tenant]));
    if (run === null) throw new Unavailable('The new run cannot be read yet.', { runId: request.runId });
    const result = repeatOf(parent, run);
    if (!reply.created) await this.#assertSame(run, repeats);
    return result;
  }

  async #fileOfRerun(
    caller: Caller,
    { tenant }: RunView,
    created: RunCreated,
    given: string | null | undefined,
  ): Promise<Pick<RepositoryFile, 'yaml' | 'extensions'>> {
    if (given == null || given === created.yaml) return { yaml: created.yaml, extensions: created.extensions ?? [] };
    const lock = (created.extensions ?? []).map(({ uses, id, version, hash }) => ({ uses, id, version, hash }));
    const { extensions } = await this.#files.check(caller, given, lock.length === 0 ? undefined : lock, tenant);
    return { yaml: given, extensions };
  }

  /** Creates it, and waits for its end for as long. Whoever may repeat what has been unavailable learns the run's id. */
  async #run(
    { runId, tenant }: { readonly runId: string; readonly tenant: string },
    make: () => Promise<TriggerResult>,
    waitMs: number,
    clientGone: AbortSignal,
  ): Promise<TriggerResult> {
    const create = (): Promise<TriggerResult> => sayingRunId(runId, make);
    if (waitMs === 0 || this.#waits.size >= this.#settings.waitsMax) return await create();
    const wait = new AbortController();
    const leave = (): void => wait.abort();
    // It may have left while its file was read.
    if (clientGone.aborted) leave();
    else clientGone.addEventListener('abort', leave, { once: true });
    this.#waits.add(wait);
    const end = waitForRunEnd(this.#sources, runId, tenant);
    try {
      const created = await create();
      if (isEnded(created.run.status)) return created;
      if ((await end.until(waitMs, wait.signal)) === 'not ended' && clientGone.aborted) return created;
      return resultOf(await this.#newest(created.run, tenant));
    } finally {
      end.stop();
      this.#waits.delete(wait);
      clientGone.removeEventListener('abort', leave);
    }
  }

  /** `repeats` undefined: nobody has given the id, so that a run that is there has come of this request. */
  async #created(request: CreateRequest, repeats: Repeats | undefined): Promise<TriggerResult> {
    const reply = await this.#owners.create(request).catch((error: unknown) => {
      throw error instanceof Conflict ? new BadUserInput(`The run id ${request.runId} belongs to another run.`) : error;
    });
    // The reply has no view where a trigger is repeated whose run has left its owner's memory.
    const run: RunView | null = reply.run ?? (await this.#reads.view(request.runId, [request.tenant]));
    // Another tenant's or pipeline's run would be shown to this caller otherwise.
    if (run === null || !mayComeOf(run, request))
      throw new BadUserInput(`The run id ${request.runId} belongs to another run.`);
    if (!reply.created) await this.#assertSame(run, repeats);
    return resultOf(run);
  }

  /** Throws `BadUserInput` where a run that is there already has not come of the same request. */
  async #assertSame(run: RunView, repeats: Repeats | undefined): Promise<void> {
    if (repeats === undefined) return;
    const created = await this.#settings.createdOf(run);
    if (created === null || (await repeats(created))) return;
    throw new BadUserInput(
      `The run id ${run.id} belongs to a run of another file, or with other inputs: leave 'runId' out for a new run.`,
    );
  }

  /** Whether its inputs are those that come of these by its own file: that of a branch may be another one by now. */
  async #hasInputs(
    { tenant, yaml, extensions = [], inputs }: RunCreated,
    given: NonNullable<TriggerArguments['inputs']>,
    inherited: RunCreated['inputs'] = {},
  ): Promise<boolean> {
    // Its file declares none.
    if (inputs === undefined) return given.length === 0;
    const file = await this.#files.checkResolved(yaml, extensions, tenant).catch((error: unknown) => {
      if (error instanceof BadUserInput) return null;
      throw error;
    });
    // Another release has read it; this one cannot tell.
    if (file === null) return true;
    const declared = Object.entries(inherited).filter(([name]) => file.inputs?.some((input) => input.name === name));
    const resolved = resolveInputs(
      file,
      new Map([...declared, ...given.map(({ key, value }) => [key, value] as const)]),
    );
    return resolved.ok && areEqual(inputs, resolved.values);
  }

  /** The run has been accepted: where nobody can be asked any more, it is shown as it was then. */
  async #newest(created: RunView, tenant: string): Promise<RunView> {
    try {
      const view = await this.#reads.view(created.id, [tenant]);
      return view !== null && view.version >= created.version ? view : created;
    } catch (error) {
      if (error instanceof Unavailable) return created;
      throw error;
    }
  }

  #runIdOf(given: string | null | undefined, key: string): string {
    const now = this.#settings.now();
    if (given === null || given === undefined) return newRunId({ now, key, random: randomBytes(10) });
    if (!runIdFitsKey(given, key)) {
      throw new BadUserInput(
        `'runId' does not fit: give back the 'runId' of an earlier trigger of this pipeline by you, or leave it out.`,
      );
    }
    if (runIdTime(given) > now + RUN_ID_AHEAD_MS) {
      throw new BadUserInput(
        `'runId' is of a time that has not come by this server's clock: leave it out, or have the clocks of the servers set right.`,
      );
    }
    return given;
  }
}

/** Whose it is, where others let the caller start its runs. */
function grantedRepository(caller: Caller, { provider, repository }: DispatchArguments): RepositoryReach | null {
  const found = reachesOf(caller, 'trigger', { provider, repository });
  if (found.length > 1)
    throw new Conflict(
      `Several people have let you into '${repository}': none of them can be told from the others here.`,
    );
  return found[0] ?? null;
}

/** Where others have let the caller into a repository of that name, with this role or one above it. */
function reachesOf(
  caller: Caller,
  role: AccessRole,
  { provider, repository }: Pick<DispatchArguments, 'provider' | 'repository'>,
): readonly RepositoryReach[] {
  return grantedReaches(caller, role)
    .map(repositoryOfReach)
    .filter((one) => one !== null)
    .filter((one) => one.provider === provider && one.repository.toLowerCase() === repository?.toLowerCase());
}

/** For whoever sees the repository's runs anyway: others are told that they have not connected it. */
function mayOnlyRead({ repository }: DispatchArguments): Forbidden {
  return new Forbidden(
    `Your role at '${repository?.slice(0, 200)}' is read; to run it takes trigger, which its owner can give you (grantAccess).`,
  );
}

/** Whether a run that is there may have come of the same arguments. A rerun has all of these from the run before it. */
function isDispatchOf(run: RunView, { provider, repository, ref }: DispatchArguments): boolean {
  const refs = [ref, `refs/heads/${ref}`, `refs/tags/${ref}`];
  return (
    run.lineage === undefined &&
    run.trigger === 'api' &&
    run.provider === provider &&
    run.repository?.toLowerCase() === repository?.toLowerCase() &&
    refs.includes(run.ref)
  );
}

/** Whether a run of its id is one of this request's, and no rerun, nor of a push or another repository. What it began with is not looked at. */
function mayComeOf(run: RunView, { tenant, key, origin }: CreateRequest): boolean {
  return (
    run.tenant === tenant &&
    run.key === key &&
    run.lineage === undefined &&
    run.trigger === origin.kind &&
    run.provider === origin.provider &&
    run.repository === origin.repository &&
    run.ref === origin.ref
  );
}

/** Throws `BadUserInput` where the id that was given has been another run's. */
function repeatOf(parent: string, run: RunView): TriggerResult {
  if (run.lineage?.parent === parent) return resultOf(run);
  throw new BadUserInput(`The run id ${run.id} belongs to another run.`);
}

/** `UNAVAILABLE` says the id, whatever could not be asked: without it a client would trigger a second run. */
async function sayingRunId(
  runId: string | null | undefined,
  answer: () => Promise<TriggerResult>,
): Promise<TriggerResult> {
  try {
    return await answer();
  } catch (error) {
    const id = runId ?? '';
    if (!(error instanceof Unavailable) || 'runId' in error.extensions || !isRunId(id)) throw error;
    throw new Unavailable(error.message, { cause: error, retryAfterSecs: error.retryAfterSecs, runId: id });
  }
}

function resultOf(run: RunView): TriggerResult {
  return { run, summary: summaryOf(run) };
}

/** `values`: of every input that the file declares. Throws `BadUserInput` that names the input at fault. */
function givenInputs(
  file: CheckedFile,
  given: NonNullable<TriggerArguments['inputs']>,
): {
  readonly given: NonNullable<CreateRequest['inputs']>;
  readonly values: Readonly<Record<string, string>>;
} {
  const byName = inputsByName(given);
  const resolved = resolveInputs(file, byName);
  if (!resolved.ok)
    throw new BadUserInput(
      // A hint may end it as a question.
      `'inputs': ${resolved.message}${resolved.message.endsWith('?') ? '' : '.'}`,
      resolved.name === undefined ? {} : { input: resolved.name },
    );
  return { given: [...byName], values: resolved.values };
}

/** Throws `BadUserInput` that names an input which is given twice. */
function inputsByName(given: NonNullable<TriggerArguments['inputs']>): Map<string, string> {
  const byName = new Map<string, string>();
  for (const { key, value } of given) {
    if (byName.has(key)) throw new BadUserInput(`'inputs': the input ${quoted(key)} is given twice.`, { input: key });
    byName.set(key, value);
  }
  return byName;
}

function areEqual(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

function waitMsOf(seconds: number): number {
  if (seconds < 0 || seconds > WAIT_SECS_MAX)
    throw new BadUserInput(`'waitSeconds' is ${seconds}; it must be 0 to ${WAIT_SECS_MAX}.`);
  return seconds * 1000;
}

function priorityOf(priority: number | null | undefined, caller: Caller): number | undefined {
  if (priority === null || priority === undefined) return undefined;
  if (caller.kind !== 'api-key') throw new Forbidden("'priority' can be given with the API key only.");
  if (Math.abs(priority) > PRIORITY_MAX)
    throw new BadUserInput(`'priority' is ${priority}; it must be -${PRIORITY_MAX} to ${PRIORITY_MAX}.`);
  return priority;
}
