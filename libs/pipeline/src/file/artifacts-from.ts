/** Which stages the `from` of a stage's `artifacts` means, once the stages are known. */
import type { ArtifactsDefinition } from '../model/kept-files.ts';
import { quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import { didYouMean } from '../text/suggest.ts';
import type { Span } from '../text/text-position.ts';
import type { StageDraft, StageNames } from './drafts.ts';

interface FromMeaning {
  readonly names: StageNames;
  /** Whether the stage comes after this expanded one, directly or not. */
  readonly comesAfter: (stage: number) => boolean;
  /** What an expanded stage of the level has become: itself, or the stages of its extension. */
  readonly stagesOf: (stage: number) => readonly string[];
  readonly problems: Problems;
  /** Where problems are shown; absent: at the name. */
  readonly site: Span | undefined;
}

/** With the stages that `from` means: those that come before this one, whole matrices and extensions by one name. */
export function artifactsOf(
  { artifacts, path }: Pick<StageDraft, 'artifacts' | 'path'>,
  { names, comesAfter, stagesOf, problems, site }: FromMeaning,
): ArtifactsDefinition | undefined {
  if (artifacts?.from === undefined) return artifacts?.kept;
  const from = new Set<string>();
  for (const node of artifacts.from) {
    const { text } = node;
    const single = names.byFullName.get(text);
    const draft = names.byName.get(text);
    const [first, count] =
      single !== undefined || draft === undefined ? [single, 1] : [names.firstOf[draft], names.countOf[draft] ?? 0];
    if (first === undefined || !comesAfter(first)) {
      problems.add(
        site ?? node,
        `${path}.artifacts.from`,
        `${quoted(text)} is no stage that this one comes after`,
        () =>
          didYouMean(
            text,
            names.fullNames.filter((_, stage) => comesAfter(stage)),
          ),
      );
      continue;
    }
    for (let stage = first; stage < first + count; stage += 1) for (const name of stagesOf(stage)) from.add(name);
  }
  return { ...artifacts.kept, from: [...from] };
}
