/** What is to be said of a good file: that depends on when somebody asks, so it is no part of what the file means. */
import type { Diagnostic, PipelineDefinition } from '../model/definition.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import type { Quarantine } from '../model/quarantine.ts';
import { LineIndex } from '../text/text-position.ts';

/** Of `text`, which `definition` was read from, at that time: quarantines that are over, in the order of the file. */
export function warningsOf(text: string, { stages }: PipelineDefinition, now: number): Diagnostic[] {
  // What a matrix or an extension makes of one stage has its quarantine.
  const over = new Map<number, Quarantine>();
  for (const { quarantine } of stages)
    if (quarantine !== undefined && now >= quarantine.endsAt) over.set(quarantine.start, quarantine);
  if (over.size === 0) return [];
  const lines = new LineIndex(text.startsWith('\uFEFF') ? text.slice(1) : text);
  return [...over.values()]
    .toSorted((a, b) => a.start - b.start)
    .slice(0, PIPELINE_LIMITS.diagnosticsMax)
    .map(({ until, start, path }) => ({
      ...lines.position(start),
      path,
      message: `this quarantine was over with ${until} and has no effect`,
      suggestion: 'mend the stage and take the quarantine away, or give it a later day',
      length: until.length,
    }));
}
