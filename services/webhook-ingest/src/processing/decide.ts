/**
 * From a delivery to its decision: clone, find the pipeline, look at what it wants to run for. What the push or its
 * repository got wrong is a decision too; what failed on our side (store, registry away) is thrown, and tried again.
 */
import { setImmediate as othersTurn } from 'node:timers/promises';
import { callService } from '@penstock/service';
import type { Bus } from '@penstock/bus';
import {
  BadLock,
  LOCK_NAME,
  parseLock,
  refusedFileProblems,
  unresolvedOf,
  type LockEntry,
  type ResolveAnswer,
  type ResolveRequest,
  type Unresolved,
} from '@penstock/extension';
import { parsePipelineOffThread, usesOffThread } from '@penstock/parse-pool';
import { BadUserInput, Forbidden, NotFound } from '@penstock/errors';
import {
  diagnosticLine,
  matchesPullRequest,
  matchesPush,
  PIPELINE_FILES,
  PIPELINE_LIMITS,
  type Diagnostic,
  type ParseResult,
  type PipelineDefinition,
  type ResolvedExtension,
  resolveInputs,
  type ServerTemplate,
} from '@penstock/pipeline';
import type { Decision, TraceStep } from '../model/decision.ts';
import { isTrustedDelivery, type Delivery } from '../model/delivery.ts';
import { gitCodeOf, gitPathOf, type DeliveryError } from '../model/errors.ts';
import { PushSchedule } from './schedule.ts';
import type { FetchedCommit, CommitSource, RefSource } from '../model/ports.ts';
import { HeadElsewhere } from '../model/errors.ts';
import { toldOf, type CloneCredentials, type OwnCredential } from '../model/clone-credentials.ts';
import type { Log } from '@penstock/telemetry/log';

export const SERVER_TEMPLATE = 'server_template';
const NO_SOURCE = 'none';
const SKIP = /\[(?:skip ci|ci skip)\]/iu;
/** How many of a file's problems a message to a person names. */
const PROBLEMS_TOLD_MAX = 5;
/** The costliest files take half a second; the rest is waiting for those of other repositories. */
const PARSE_MS_MAX = 10_000;
/** A line of some 150 bytes for each extension. */
export const LOCK_BYTES_MAX = 256 * 1024;

export interface DecisionSources {
  readonly bus: Bus;
  readonly mirrors: CommitSource & RefSource;
  readonly clones: CloneCredentials;
  /** Whether the head of a pull request may be on its way to the host's ref; asked each time that this stands elsewhere (null: nowhere). */
  mayMove?(head: string | null): boolean;
  /** Commits that are wanted next from the same address. */
  readonly along?: readonly string[] | undefined;
  /** `SERVICE_WEBHOOK_PIPELINE`. */
  readonly template: ServerTemplate | null;
  /** Whether `SERVICE_WEBHOOK_REPOSITORIES` is set. */
  readonly namesRepositories: boolean;
  readonly log: Log;
  /** Answers the tenant's tier, which decides what its extensions may be. */
  tierOf(delivery: Pick<Delivery, 'userId'>): Promise<string>;
}

/** Of what waits behind a push: the commits that will be fetched from the same address. */
export function commitsBehind(delivery: Delivery, behind: readonly Delivery[]): readonly string[] {
  const isWanted = ({ cloneUrl, pullRequest, message }: Delivery): boolean =>
    cloneUrl === delivery.cloneUrl && pullRequest === undefined && (message === null || !SKIP.test(message));
  return behind.filter(isWanted).map(({ commit }) => commit);
}

/** Has its commit fetched before somebody waits for it. */
export async function fetchAhead(delivery: Delivery, sources: DecisionSources): Promise<void> {
  const { cloneUrl: url, commit, key } = delivery;
  const { credential } = (await ownCredential(delivery, sources)) ?? {};
  await sources.mirrors.fetch({ url, commit, key, credential, along: sources.along });
}

export async function decide(delivery: Delivery, sources: DecisionSources): Promise<Decision> {
  const schedule = new PushSchedule(delivery, sources.namesRepositories);
  return schedule.addTo(await decideAbout(delivery, schedule, sources));
}

async function decideAbout(delivery: Delivery, schedule: PushSchedule, sources: DecisionSources): Promise<Decision> {
  const trace: TraceStep[] = [
    { step: 'verified', passed: delivery.verified !== 'none', detail: VERIFIED[delivery.verified] },
  ];
  const passed = (step: TraceStep['step'], detail: string): void => void trace.push({ step, passed: true, detail });
  const skipped = (
    step: TraceStep['step'],
    detail: string,
    source: string = NO_SOURCE,
    pipelineName = delivery.repository,
  ): Decision => {
    trace.push({ step, passed: false, detail });
    return { kind: 'ended', status: 'SKIPPED', pipelineName, source, trace };
  };
  const failed = (
    step: TraceStep['step'],
    error: DeliveryError & { readonly code: 'checkout' | 'pipeline_file' },
    source: string = NO_SOURCE,
  ): Decision => {
    trace.push({ step, passed: false, detail: error.message });
    return {
      kind: 'ended',
      status: 'FAILED',
      reason: error.code,
      pipelineName: delivery.repository,
      source,
      error,
      trace,
    };
  };

  const { pullRequest } = delivery;
  let isSkipped = pullRequest === undefined && delivery.message !== null && SKIP.test(delivery.message);
  // Its file is read all the same where it says what else is to be started.
  if (isSkipped && !schedule.isWanted) return skipped('message', SKIPPED_BY_MESSAGE);
  let own: OwnCredential | undefined;
  let commit: FetchedCommit;
  let found: { readonly path: string; readonly text: string } | null;
  try {
    own = await ownCredential(delivery, sources);
    const { credential } = own ?? {};
    if (pullRequest !== undefined) {
      const { cloneUrl: url, ref, key } = delivery;
      const head = await sources.mirrors.findRef({ url, ref, key, credential });
      if (head !== delivery.commit && sources.mayMove?.(head) === true) throw new HeadElsewhere();
      if (head !== delivery.commit) {
        const stands = head === null ? 'is not there' : `stands at ${head}`;
        trace.push({ step: 'head', passed: false, detail: `${delivery.ref} ${stands}, and not at ${delivery.commit}` });
        return { kind: 'ended', status: 'CANCELLED', pipelineName: delivery.repository, source: NO_SOURCE, trace };
      }
      passed('head', `${delivery.ref} stands at ${delivery.commit}`);
      // Only now: what is no head supersedes nothing.
      if (delivery.message !== null && SKIP.test(delivery.message)) return skipped('message', SKIPPED_BY_MESSAGE);
    }
    commit = await sources.mirrors.fetch({
      url: delivery.cloneUrl,
      commit: delivery.commit,
      key: delivery.key,
      credential,
      ...(pullRequest === undefined ? { along: sources.along } : { ref: delivery.ref }),
    });
    passed('fetched', `${delivery.commit} was fetched`);
    if (delivery.message === null && SKIP.test(await commit.message())) {
      if (!schedule.isWanted) return skipped('message', SKIPPED_BY_MESSAGE);
      isSkipped = true;
    }
    found =
      sources.template === null
        ? await commit.readFile(PIPELINE_FILES, PIPELINE_LIMITS.textBytesMax)
        : { path: SERVER_TEMPLATE, text: sources.template.filled(delivery) };
  } catch (error) {
    const code = gitCodeOf(error);
    if (code === null) throw error;
    const message = toldOf(error, own);
    if (code === 'bad_file') schedule.none();
    if (isSkipped) return skipped('message', SKIPPED_BY_MESSAGE);
    // Without git on this machine no push can be read; everything else is its sender's affair.
    const tell = code === 'git_unusable' ? 'error' : 'info';
    sources.log[tell](
      { repository: delivery.repository, commit: delivery.commit, code, err: error },
      'a push could not be read',
    );
    if (code === 'address_not_allowed') {
      trace.push({ step: 'address', passed: false, detail: message });
      return {
        kind: 'nothing',
        status: 'Failed',
        source: NO_SOURCE,
        error: { code: 'address_not_allowed', message },
        trace,
      };
    }
    return code === 'bad_file'
      ? failed('file', { code: 'pipeline_file', message }, gitPathOf(error))
      : failed('fetched', { code: 'checkout', message });
  }
  if (found === null) {
    schedule.none();
    if (isSkipped) return skipped('message', SKIPPED_BY_MESSAGE);
    trace.push({ step: 'file', passed: false, detail: `none of ${PIPELINE_FILES.join(', ')} is in the commit` });
    return { kind: 'nothing', status: 'Skipped', source: NO_SOURCE, trace };
  }
  const { path: source, text } = found;
  passed('file', source === SERVER_TEMPLATE ? "the server's template" : source);
  let read: Read;
  try {
    // What the server runs is not the repository's to pin.
    const readLock = async (): Promise<string | null> =>
      source === SERVER_TEMPLATE ? null : ((await commit.readFile([LOCK_NAME], LOCK_BYTES_MAX))?.text ?? null);
    read = await readPipeline(text, readLock, delivery, sources);
  } catch (error) {
    const code = gitCodeOf(error);
    if (code === null) throw error;
    if (code === 'bad_file') schedule.none();
    if (isSkipped) return skipped('message', SKIPPED_BY_MESSAGE);
    return failed(
      'read',
      {
        code: code === 'bad_file' ? 'pipeline_file' : 'checkout',
        message: `${LOCK_NAME}: ${toldOf(error, own)}`,
      },
      source,
    );
  }
  if ('problem' in read) schedule.none();
  else schedule.read(read.definition, text, source, read.extensions);
  if (isSkipped) return skipped('message', SKIPPED_BY_MESSAGE);
  if ('problem' in read) return failed('read', { code: 'pipeline_file', message: read.problem }, source);
  const { definition, extensions } = read;
  passed('read', `the pipeline '${definition.name}'`);
  const match =
    pullRequest === undefined
      ? await matchesPush(definition.on, delivery, othersTurn)
      : await matchesPullRequest(
          definition.on,
          pullRequest,
          () => changedPaths(commit, delivery, pullRequest.branch),
          othersTurn,
        );
  const more = definition.on?.pullRequest?.cancelSuperseded === false ? { keepsSuperseded: true } : {};
  if (!match.matched)
    return { ...skipped('matched', `filtered by on.${match.rule}`, source, definition.name), ...more };
  passed('matched', matchedDetail(definition, pullRequest === undefined ? 'push' : 'pull_request'));
  const inputs = resolveInputs(definition, new Map());
  if (!inputs.ok)
    return failed(
      'read',
      {
        code: 'pipeline_file',
        message: `${inputs.message}, and ${pullRequest === undefined ? 'a push' : 'a pull request'} gives none: give it a default`,
      },
      source,
    );
  return { kind: 'run', pipelineName: definition.name, yaml: text, source, extensions, trace, ...more };
}

/** Only a connection has one: what the server vouches for, or nobody, is read with what the server has. */
async function ownCredential(
  { verified, userId, provider, repository, cloneUrl }: Delivery,
  { clones }: DecisionSources,
): Promise<OwnCredential | undefined> {
  if (verified !== 'connection' || userId === undefined) return undefined;
  return await clones.of({ userId, provider, repository, cloneUrl });
}

/** What cannot be told lets every filter pass. */
async function changedPaths(
  commit: FetchedCommit,
  { ref }: Delivery,
  branch: string,
): Promise<readonly string[] | null> {
  try {
    return await commit.changedPaths(ref, branch);
  } catch (error) {
    if (gitCodeOf(error) === null) throw error;
    return null;
  }
}

function matchedDetail({ on }: Pick<PipelineDefinition, 'on'>, event: 'push' | 'pull_request'): string {
  const filter = event === 'push' ? on?.push : on?.pullRequest;
  if (filter !== undefined) return `the filters of on.${event} let it pass`;
  return `the file runs for every ${event === 'push' ? 'push' : 'pull request'}`;
}

const VERIFIED: Readonly<Record<Delivery['verified'], string>> = {
  server: "signed with the server's secret",
  connection: "signed with a connected repository's secret",
  none: 'not signed: no secrets, no writing to caches',
};
const SKIPPED_BY_MESSAGE = "the head commit's message says [skip ci]";

/** Whose file it is. */
type Pushed = Pick<Delivery, 'key' | 'tenant' | 'userId' | 'verified' | 'pullRequest'>;

type Read =
  | {
      readonly definition: Extract<ParseResult, { ok: true }>['definition'];
      readonly extensions: readonly ResolvedExtension[];
    }
  | { readonly problem: string };

/** `readLock`: called where the file uses extensions. */
export async function readPipeline(
  text: string,
  readLock: () => Promise<string | null>,
  delivery: Pushed,
  sources: DecisionSources,
): Promise<Read> {
  const { key } = delivery;
  const uses = await usesOffThread(text, key, PARSE_MS_MAX);
  let extensions: readonly ResolvedExtension[] = [];
  if (uses.length > 0) {
    const lock = lockOf(await readLock());
    if ('problem' in lock) return lock;
    const resolved = await resolve(uses, lock.entries, delivery, sources);
    if ('problem' in resolved) return { problem: await placed(text, key, resolved, sources) };
    extensions = resolved.extensions;
  }
  const parsed = await parsePipelineOffThread(
    text,
    { template: sources.template !== null, extensions, key },
    PARSE_MS_MAX,
  );
  if (parsed.ok) return { definition: parsed.definition, extensions };
  return { problem: listed(parsed.diagnostics) };
}

function listed(diagnostics: readonly Diagnostic[]): string {
  const more = diagnostics.length - PROBLEMS_TOLD_MAX;
  return `${diagnostics.slice(0, PROBLEMS_TOLD_MAX).map(diagnosticLine).join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

interface Refusal {
  readonly problem: string;
  readonly unresolved: readonly Unresolved[];
}

/** The registry's refusals with the places of their `uses`, and whatever else is wrong with the file. */
async function placed(
  text: string,
  key: string,
  { problem, unresolved }: Refusal,
  sources: DecisionSources,
): Promise<string> {
  const template = sources.template !== null;
  const problems = await refusedFileProblems(text, unresolved, (file, options) =>
    parsePipelineOffThread(file, { ...options, template, key }, PARSE_MS_MAX),
  );
  return problems.length === 0 || unresolved.length === 0 ? problem : listed(problems);
}

function lockOf(text: string | null): { readonly entries: readonly LockEntry[] } | { readonly problem: string } {
  if (text === null) return { entries: [] };
  try {
    return { entries: parseLock(text) };
  } catch (error) {
    if (error instanceof BadLock)
      return { problem: `${LOCK_NAME}: ${error.message}; make it anew with 'penstock lock --update'` };
    throw error;
  }
}

async function resolve(
  uses: readonly string[],
  lock: readonly LockEntry[],
  delivery: Pushed,
  sources: DecisionSources,
): Promise<{ readonly extensions: readonly ResolvedExtension[] } | Refusal> {
  // Anybody can have sent what nobody signed, and written what a fork has: it sees what everybody sees.
  const tenant = isTrustedDelivery(delivery) ? delivery.tenant : null;
  const request: ResolveRequest = {
    caller: { tenant, tier: await sources.tierOf(delivery), isAdmin: false },
    uses,
    lock,
  };
  try {
    const { extensions } = await callService<ResolveRequest, ResolveAnswer>(
      sources.bus,
      'registry',
      'resolve',
      request,
    );
    return { extensions };
  } catch (error) {
    if (error instanceof BadUserInput || error instanceof NotFound || error instanceof Forbidden)
      return {
        problem: error.message,
        unresolved: unresolvedOf(error) ?? [],
      };
    throw error;
  }
}
