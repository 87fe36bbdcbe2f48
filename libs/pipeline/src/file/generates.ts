/** Reads `generates` of a stage: that it adds stages to its run, and what these may name. */
import type { Ceiling } from '../model/ceiling.ts';
import type { AddedBy } from '../model/generates.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import type { Span } from '../text/text-position.ts';
import type { ScalarNode } from '../yaml/yaml-tree.ts';
import type { StageDraft, StageNames } from './drafts.ts';
import { fieldOf, joinPath, mustBe, readKeys, readList, type Field } from './fields.ts';
import { readAudience } from './id-tokens.ts';
import { readSecretName } from './secrets.ts';
import { GENERATES_KEYS } from './vocabulary.ts';

const WANTED = "true, or a map with the 'secrets' and the 'id_token' that the new stages may name";

/** Undefined where it is `false`, or could not be read. */
export function readGenerates(field: Field): Ceiling | undefined {
  const { node, path, problems } = field;
  if (node.kind === 'scalar' && node.plain && /^(true|True|TRUE|false|False|FALSE)$/.test(node.text))
    return /^t/i.test(node.text) ? { secrets: [], audiences: [] } : undefined;
  if (node.kind !== 'map') {
    mustBe(field, WANTED);
    return undefined;
  }
  const keys = readKeys(node, GENERATES_KEYS, "in 'generates'", path, problems);
  const [secrets, audiences] = [keys.get('secrets'), keys.get('id_token')];
  return {
    secrets: secrets === undefined ? [] : namesIn(fieldOf(secrets, path, problems), 'secret', readSecretName),
    audiences: audiences === undefined ? [] : namesIn(fieldOf(audiences, path, problems), 'audience', readAudienceIn),
  };
}

function namesIn(
  field: Field,
  what: string,
  read: (node: ScalarNode, field: Field) => string | undefined,
): readonly string[] {
  const nodes = readList(
    field,
    `a list of names of ${what === 'secret' ? 'secrets' : 'audiences'}`,
    PIPELINE_LIMITS.ceilingMax,
  );
  const names = new Set<string>();
  for (const node of nodes ?? []) {
    const name = read(node, field);
    if (name === undefined) continue;
    if (names.has(name)) field.problems.add(node, field.path, `the ${what} ${quoted(name)} is named twice`);
    names.add(name);
  }
  return [...names];
}

function readAudienceIn(node: ScalarNode, field: Field): string | undefined {
  return readAudience({ ...field, node });
}

/** Notes names that a stage beside them may give to those that it adds. */
export function checkGeneratedNames(drafts: readonly StageDraft[], names: StageNames, problems: Problems): void {
  for (const draft of drafts) {
    for (const { index } of draft.name.matchAll(/\//g)) {
      const before = names.byFullName.get(draft.name.slice(0, index));
      const generator = drafts[names.draftOf[before ?? -1] ?? -1];
      if (before === undefined || generator?.generates === undefined) continue;
      problems.add(
        draft.nameSpan,
        draft.path,
        `stage ${quoted(draft.name)} is called as one that ${quoted(names.fullNames[before] ?? '')} may add to the run`,
        `${quoted(generator.name)} has 'generates': what begins with its name and a slash are its own stages`,
      );
      break;
    }
  }
}

/** Notes names of new stages that the run has already. */
export function checkTakenNames(
  drafts: readonly StageDraft[],
  names: StageNames,
  { stage, taken = [] }: AddedBy,
  problems: Problems,
): void {
  const known = new Set(taken);
  for (const [index, name] of names.fullNames.entries()) {
    const draft = drafts[names.draftOf[index] ?? -1];
    if (
      draft === undefined ||
      !(known.has(`${stage}/${name}`) || taken.some((each) => each.startsWith(`${stage}/${name}/`)))
    )
      continue;
    problems.add(
      draft.nameSpan,
      draft.path,
      `the run has a stage ${quoted(`${stage}/${name}`)} already, or others under that name`,
      'give it another name',
    );
  }
}

/** Notes what stages that another adds must not name: more than that one allows, or further stages deeper than they may be. */
export function checkCeiling(drafts: readonly StageDraft[], added: AddedBy, problems: Problems): void {
  const { stage, depth, ceiling } = added;
  const generator = quoted(stage);
  const check = (span: Span | undefined, path: string, key: keyof Ceiling, names: readonly string[]): void => {
    for (const name of names)
      if (span !== undefined && !ceiling[key].includes(name))
        problems.add(
          span,
          path,
          `the ${key === 'secrets' ? 'secret' : 'audience'} ${quoted(name)} is not among those that ${generator} may hand on`,
          `name it under 'generates.${key === 'secrets' ? 'secrets' : 'id_token'}' of ${generator}`,
        );
  };
  for (const draft of drafts) {
    const at = (key: string): string => joinPath(draft.path, key);
    check(
      draft.secretsSpan,
      at('secrets'),
      'secrets',
      (draft.secrets ?? []).map(({ name }) => name),
    );
    check(
      draft.idTokensSpan,
      at('id_token'),
      'audiences',
      (draft.idTokens ?? []).map(({ audience }) => audience),
    );
    const { image, services = [] } = draft.place;
    for (const each of [image, ...services.map((service) => service.image)])
      if (each?.settings.secret !== undefined) check(each.span, at('image'), 'secrets', [each.settings.secret]);
    const { generates, generatesSpan } = draft;
    if (generates === undefined || generatesSpan === undefined) continue;
    if (depth >= PIPELINE_LIMITS.addedDepthMax)
      problems.add(
        generatesSpan,
        at('generates'),
        `this stage cannot add others: stages that were added add stages ${PIPELINE_LIMITS.addedDepthMax} deep at most`,
      );
    check(generatesSpan, at('generates'), 'secrets', generates.secrets);
    check(generatesSpan, at('generates'), 'audiences', generates.audiences);
  }
}
