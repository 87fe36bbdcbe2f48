/** What a job says of itself, apart from its script. */
import type { DraftStage } from '../draft.ts';
import type { Ledger } from '../ledger.ts';
import type { SourceMap } from '../source.ts';

export interface JobContext {
  readonly stage: DraftStage;
  readonly ledger: Ledger;
  /** What holds for jobs that do not say it themselves. */
  readonly defaults: SourceMap;
  /** Of the file and of the job, the job's last. */
  readonly variables: ReadonlyMap<string, string>;
}

/** The text with its variables written out; undefined where one of them is not known before the job runs. */
export function writtenOut(text: string, { stage, variables }: JobContext): string | undefined {
  let isKnown = true;
  const axes = new Set([
    ...Object.keys(stage.matrix?.axes ?? {}),
    ...(stage.matrix?.include ?? []).flatMap((entry) => Object.keys(entry)),
  ]);
  const result = text.replaceAll(/\$\{?(\w+)\}?/g, (_, name: string) => {
    if (axes.has(name)) return `\${{ matrix.${name} }}`;
    const value = variables.get(name);
    if (value !== undefined && !value.includes('$')) return value;
    isKnown = false;
    return '';
  });
  return isKnown ? result : undefined;
}

/** A path as the working folder has it: patterns hold no variables. */
export function plainPath(path: string, context: JobContext): string | undefined {
  const own = writtenOut(path.replace(/^\$\{?CI_PROJECT_DIR\}?\//, ''), context);
  if (own === undefined || own.includes('${{')) return undefined;
  return own.replace(/^\.\//, '').replace(/\/$/, '');
}
