/** What an attempt adds to its run, read from the file that `$SERVICE_STAGES` names: the runner and `penstock run` judge alike. */
import { BadOutputs } from '../contract/errors.ts';
import { readStageFile } from '../output/stage-file.ts';
import { failedBecause, type AttemptVerdict } from './verdict.ts';

export interface AddingAttempt {
  readonly stagesFile: string;
  readonly bytesMax: number;
  /** Of the file: what must not leave the machine. */
  readonly mask: (text: string) => string;
  /** What is wrong with the text, a line each; none: it is good. */
  readonly check: (text: string) => Promise<readonly string[]>;
  /** Takes a line for the stage's log, without its line feed. */
  readonly remark: (text: string) => void;
}

/** Without stages that can be added, an attempt that adds some has not succeeded. `added`: their text; absent: none. */
export async function judgeAdded<Verdict extends AttemptVerdict>(
  verdict: Verdict,
  { stagesFile, bytesMax, mask, check, remark }: AddingAttempt,
): Promise<(Verdict | AttemptVerdict) & { readonly added?: string }> {
  if (verdict.status !== 'success') return verdict;
  let text: string | null;
  try {
    text = readStageFile(stagesFile, '$SERVICE_STAGES', bytesMax);
  } catch (error) {
    if (!(error instanceof BadOutputs)) throw error;
    remark(error.message);
    return failedBecause('pipeline_file', 0);
  }
  if (text === null || text.trim() === '') return verdict;
  const added = mask(text);
  const problems = await check(added);
  if (problems.length === 0) return { ...verdict, added };
  for (const problem of problems) if (problem.trim() !== '') remark(problem);
  return failedBecause('pipeline_file', 0);
}
