/** What a stage gets of the secrets that it names: variables, files, and what is to be masked in its output. */
import type { StageFiles } from '../contract/port.ts';
import { Mask } from '../output/mask.ts';
import { newStageFolder } from '../system/memory.ts';

export interface StageSecrets {
  readonly env: Readonly<Record<string, string>>;
  readonly files: StageFiles | undefined;
  readonly mask: Mask;
  /** What the mask began with. */
  readonly values: readonly string[];
}

/** Of a stage that has its own already, and whose output is still to be masked. */
export async function secretsGiven(values: readonly string[]): Promise<StageSecrets> {
  return { env: {}, files: undefined, mask: await Mask.of(values), values };
}

export function noSecrets(): StageSecrets {
  return { env: {}, files: undefined, mask: new Mask(), values: [] };
}

/** `values`: by the names of secrets; one for each use. */
export async function secretsOf(
  uses: readonly { readonly variable: string; readonly name: string; readonly file: boolean }[],
  values: ReadonlyMap<string, string>,
): Promise<StageSecrets> {
  const given = uses.map(({ variable, name, file }) => ({ variable, file, value: values.get(name) ?? '' }));
  const files = given.filter(({ file }) => file).map(({ variable, value }) => ({ variable, content: value }));
  return {
    env: Object.fromEntries(given.filter(({ file }) => !file).map(({ variable, value }) => [variable, value])),
    files: files.length === 0 ? undefined : { folder: newStageFolder(), files },
    mask: await Mask.of(given.map(({ value }) => value)),
    values: given.map(({ value }) => value),
  };
}
