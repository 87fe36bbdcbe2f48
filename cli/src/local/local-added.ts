/** Stages that a stage adds to a run on this machine: checked by the same parser as the file, for what this machine can run. */
import { judgeAdded, type AttemptVerdict } from '@penstock/executor';
import {
  formatDiagnostics,
  parsePipeline,
  PIPELINE_LIMITS,
  type Lacking,
  type PipelineDefinition,
} from '@penstock/pipeline';
import type { ResultCommand, StageWork } from '@penstock/run';

export interface AddingLocally {
  readonly generates: StageWork['generates'];
  readonly stagesFile: string | undefined;
  readonly mask: (text: string) => string;
  readonly remark: (text: string) => void;
}

/** `lacking`: what this machine has not got. */
export async function localAdded<Verdict extends AttemptVerdict>(
  verdict: Verdict,
  { generates, stagesFile, mask, remark }: AddingLocally,
  lacking: Lacking,
): Promise<(Verdict | AttemptVerdict) & Pick<ResultCommand, 'added'>> {
  if (generates === undefined || stagesFile === undefined) return verdict;
  let meaning: PipelineDefinition | undefined;
  const { added: text, ...judged } = await judgeAdded(verdict, {
    stagesFile,
    bytesMax: PIPELINE_LIMITS.addedTextBytesMax,
    mask,
    remark,
    check: async (given) => {
      const parsed = parsePipeline(given, { ...generates, lacking });
      if (!parsed.ok) return formatDiagnostics(given, parsed.diagnostics, '$SERVICE_STAGES').split('\n');
      meaning = parsed.definition;
      return [];
    },
  });
  // Nothing is journaled here: a text takes what it has.
  return text === undefined ? judged : { ...judged, added: { text, meaning, bytes: 0, fileBytes: 0 } };
}
