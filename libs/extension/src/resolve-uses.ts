/**
 * What the gateway, the webhook ingest and the command share when the `uses` of a pipeline file are resolved: what a lock
 * names is known without the registry, and what the registry refuses becomes problems of the file at their places.
 */
import {
  PIPELINE_LIMITS,
  usesOf,
  type Diagnostic,
  type parsePipeline,
  type ParseResult,
  type ResolvedExtension,
} from '@penstock/pipeline';
import type { LockEntry, Unresolved } from './registry-messages.ts';

type Found = ResolvedExtension | undefined;
/** As `parsePipeline`, on whatever thread. */
type Parse = (...asked: Parameters<typeof parsePipeline>) => ParseResult | Promise<ParseResult>;

/**
 * What these `uses` lead to, those that extensions use themselves included, as far as the lock names it and `find` has it.
 * Undefined: something is not locked, or `find` does not have it, or there is more of it than a file may use.
 */
export async function resolveByLock(
  uses: readonly string[],
  lock: readonly LockEntry[],
  find: (entry: LockEntry) => Found | Promise<Found>,
): Promise<ResolvedExtension[] | undefined> {
  const locked = new Map(lock.map((entry) => [entry.uses, entry]));
  const found = new Map<string, ResolvedExtension>();
  const open = [...uses];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next)) continue;
    const entry = locked.get(next);
    const extension = entry === undefined ? undefined : await find(entry);
    if (extension === undefined || found.size >= PIPELINE_LIMITS.extensionsMax) return undefined;
    found.set(next, extension);
    open.push(...usesOf(extension.manifest));
  }
  return [...found.values()];
}

/** What the registry says in a refusal of `svc.registry.resolve`; undefined: it refused for another reason. */
export function unresolvedOf(refusal: {
  readonly extensions: Readonly<Record<string, unknown>>;
}): readonly Unresolved[] | undefined {
  return refusal.extensions['unresolved'] as readonly Unresolved[] | undefined;
}

/** The messages by their `uses`. There are several for one that uses others itself; they are one text then. */
export function refusalsByUses(unresolved: readonly Pick<Unresolved, 'uses' | 'message'>[]): Map<string, string> {
  const messages = Map.groupBy(unresolved, ({ uses }) => uses);
  return new Map([...messages].map(([uses, entries]) => [uses, entries.map(({ message }) => message).join(' ')]));
}

/**
 * All problems of a file that the registry has refused, the refusals at the places of their `uses`. What the registry has
 * resolved is no problem, though it is not known here.
 */
export async function refusedFileProblems(
  text: string,
  unresolved: readonly Unresolved[],
  parse: Parse,
): Promise<readonly Diagnostic[]> {
  const parsed = await parse(text, { refusals: refusalsByUses(unresolved), unresolved: 'accept' });
  return parsed.ok ? [] : parsed.diagnostics;
}
