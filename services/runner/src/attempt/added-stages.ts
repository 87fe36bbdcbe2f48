/** What an attempt adds to its run is checked here first, so that its log says what is wrong with it; its run's owner checks it again (P29). */
import { packText, type Job } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { judgeAdded, type AttemptVerdict } from '@penstock/executor';
import { parsePipelineOffThread } from '@penstock/parse-pool';
import { formatDiagnostics, PIPELINE_LIMITS } from '@penstock/pipeline';

/** Then the owner alone says whether it is good. */
const CHECK_MS_MAX = 20_000;

type Generates = NonNullable<Job['generates']>;

export interface AddingStage {
  readonly job: Pick<Job, 'generates' | 'key'>;
  readonly stagesFile: string | undefined;
  readonly mask: (text: string) => string;
  readonly remark: (text: string) => void;
}

/** The verdict with what its result is to carry. */
export async function withAdded<Verdict extends AttemptVerdict>(
  verdict: Verdict,
  { job: { generates, key }, stagesFile, mask, remark }: AddingStage,
): Promise<(Verdict | AttemptVerdict) & { readonly added?: string }> {
  if (generates === undefined || stagesFile === undefined) return verdict;
  const { added, ...judged } = await judgeAdded(verdict, {
    stagesFile,
    bytesMax: PIPELINE_LIMITS.addedTextBytesMax,
    mask,
    remark,
    check: (text) => problemsOf(text, generates, key),
  });
  return added === undefined ? judged : { ...judged, added: packText(added) };
}

async function problemsOf(text: string, generates: Generates, key: string): Promise<readonly string[]> {
  try {
    const parsed = await parsePipelineOffThread(text, { ...generates, key }, CHECK_MS_MAX);
    return parsed.ok ? [] : formatDiagnostics(text, parsed.diagnostics, '$SERVICE_STAGES').split('\n');
  } catch (error) {
    if (error instanceof Unavailable) return [];
    throw error;
  }
}
