/**
 * Asks the registry what the `uses` of a triggered file stand for, before the run begins. It owns the last answers by
 * lock, so that a file whose lock was taken goes on without the registry: what a lock names never changes.
 */
import type { Bus } from '@penstock/bus';
import {
  refusalsByUses,
  refusedFileProblems,
  resolveByLock,
  unresolvedOf,
  type LockEntry,
  type ResolveAnswer,
  type ResolveRequest,
  type Unresolved,
} from '@penstock/extension';
import { BadUserInput, Unavailable } from '@penstock/errors';
import { onBehalfOf, type Caller, type OnBehalf } from '@penstock/identity';
import { parsePipelineOffThread, usesOffThread } from '@penstock/parse-pool';
import { parseUses, type Diagnostic, type ResolvedExtension } from '@penstock/pipeline';
import { callService } from '@penstock/service';
import { badPipeline } from './bad-pipeline.ts';
import { readingTurn } from './reading-turn.ts';

export interface UsesResolver {
  /**
   * Those that extensions use themselves are among the answer. Throws `BadUserInput` with the diagnostics of a file whose
   * extensions cannot be resolved, and `Unavailable` where the registry does not answer and the lock does not suffice.
   */
  resolve(caller: Caller, yaml: string, lock: readonly LockEntry[] | undefined): Promise<readonly ResolvedExtension[]>;
}

/** A manifest has some kilobytes. */
const REMEMBERED_MAX = 500;
/** A trigger waits for this, and the registry answers in milliseconds; one that starts anew is there within this time. */
const ASK_MS_MAX = 5_000;
/** The wait where the answer is known in any case. */
const ASK_LOCKED_MS_MAX = 1_000;

/** As a trigger waits for its file. */
const PARSE_MS_MAX = 5_000;

export function usesResolver(bus: Bus, askMsMax = ASK_MS_MAX): UsesResolver {
  const remembered = new Map<string, ResolvedExtension>();
  return {
    async resolve(caller, yaml, lock) {
      const asking = onBehalfOf(caller);
      const key = readingTurn(asking.tenant ?? '', yaml);
      // Most files use none, and are not read twice for that.
      const uses = await usesOffThread(yaml, key, PARSE_MS_MAX);
      if (uses.length === 0) return [];
      const known = await resolveByLock(uses, lock ?? [], (entry) => remembered.get(keyOf(asking, entry)));
      const deadlineMs = known === undefined ? askMsMax : Math.min(askMsMax, ASK_LOCKED_MS_MAX);
      const request: ResolveRequest = { caller: asking, uses, ...(lock === undefined ? {} : { lock }) };
      try {
        const { extensions } = await callService<ResolveRequest, ResolveAnswer>(
          bus,
          'registry',
          'resolve',
          request,
          deadlineMs,
        );
        for (const each of extensions) remember(remembered, keyOf(asking, each), each);
        return extensions;
      } catch (error) {
        if (error instanceof BadUserInput) throw await withPlaces(yaml, key, error);
        if (error instanceof Unavailable && known !== undefined) return known;
        throw error;
      }
    },
  };
}

function remember(remembered: Map<string, ResolvedExtension>, key: string, extension: ResolvedExtension): void {
  remembered.delete(key);
  if (remembered.size >= REMEMBERED_MAX) remembered.delete(remembered.keys().next().value ?? '');
  remembered.set(key, extension);
}

/** Answers are kept by tenant, for what one may see is no other's business. */
function keyOf(
  { tenant, tier }: OnBehalf,
  { uses, version, hash }: Pick<ResolvedExtension, 'uses' | 'version' | 'hash'>,
): string {
  return JSON.stringify([tenant, tier, uses, version, hash]);
}

/** All problems of the file, the registry's refusals at the places of the `uses` that they are about. */
async function withPlaces(yaml: string, key: string, error: BadUserInput): Promise<BadUserInput> {
  const unresolved = unresolvedOf(error);
  if (unresolved === undefined) return error;
  // There are several where an extension uses several others.
  const faultsOf = Map.groupBy(unresolved, ({ uses }) => uses);
  const refusals = refusalsByUses(unresolved);
  const byMessage = new Map([...faultsOf].map(([uses, faults]) => [refusals.get(uses), faults]));
  const placed = new Set<string>();
  const problems = await refusedFileProblems(yaml, unresolved, (text, options) =>
    parsePipelineOffThread(text, { ...options, key }, PARSE_MS_MAX),
  );
  const diagnostics = problems.flatMap((diagnostic) => {
    const faults = diagnostic.path.endsWith('.uses') ? byMessage.get(diagnostic.message) : undefined;
    if (faults === undefined) return [diagnostic];
    placed.add(diagnostic.message);
    return faults.map((fault) => ({ ...diagnostic, ...wordingOf(fault) }));
  });
  // The parser reports what is no `uses` at all; a problem that the bound of its list has cut off has no place.
  const elsewhere = unresolved
    .filter(({ uses }) => 'id' in parseUses(uses) && !placed.has(refusals.get(uses) ?? ''))
    .map((each): Diagnostic => ({ line: 1, column: 1, path: '', ...wordingOf(each) }));
  return badPipeline([...diagnostics, ...elsewhere], { unresolved });
}

function wordingOf({ message, candidates: [candidate] }: Unresolved): Pick<Diagnostic, 'message' | 'suggestion'> {
  return {
    message: message.replace(/(?:; did you mean .*|\.)$/, ''),
    suggestion: candidate === undefined ? undefined : `did you mean '${candidate}'?`,
  };
}
