/** What a `uses` says: `<category>/<name>@<version or range>`. */
import { quoted } from '../text/printable.ts';
import { Problems } from '../text/problems.ts';
import { didYouMean } from '../text/suggest.ts';
import { screenText } from '../yaml/yaml-screen.ts';
import { readYaml } from '../yaml/yaml-tree.ts';

export const EXTENSION_CATEGORIES = ['build', 'test', 'deploy', 'notify', 'security', 'utility'] as const;

/** Lower-case ASCII only: no two names can look alike by their script or their case. */
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const NAME_LENGTH_MAX = 64;
/** What a version or a range of versions is written with; the registry decides what it means. */
const RANGE = /^[0-9A-Za-z.^~<>=|*+ -]{1,64}$/;

export interface UsesReference {
  /** `<category>/<name>`. */
  readonly id: string;
  readonly range: string;
}

export interface UsesFault {
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** The parts of a `uses`, or why it is none. */
export function parseUses(text: string): UsesReference | UsesFault {
  const at = text.indexOf('@');
  const id = at === -1 ? text : text.slice(0, at);
  const fault = extensionIdFault(id);
  if (fault !== undefined) return fault;
  if (at === -1)
    return {
      message: `${quoted(text)} names no version`,
      suggestion: `'${id}@^1' takes any version from 1.0.0 and before 2.0.0`,
    };
  const range = text.slice(at + 1);
  return RANGE.test(range) && range.trim() === range
    ? { id, range }
    : {
        message: `${quoted(range)} is no version and no range of versions`,
        suggestion: "such as '2.1.0', '^2.1' or '2.x'",
      };
}

/** Why a text cannot be the id of an extension. */
export function extensionIdFault(id: string): UsesFault | undefined {
  const [category = '', name, ...rest] = id.split('/');
  if (name === undefined || rest.length > 0)
    return {
      message: `${quoted(id)} is not the id of an extension: <category>/<name>`,
      suggestion: `the categories are ${EXTENSION_CATEGORIES.join(', ')}`,
    };
  if (!EXTENSION_CATEGORIES.some((known) => known === category)) {
    return {
      message: `${quoted(category)} is not a category of extensions`,
      suggestion: didYouMean(category, EXTENSION_CATEGORIES) ?? `the categories are ${EXTENSION_CATEGORIES.join(', ')}`,
    };
  }
  if (NAME.test(name) && name.length <= NAME_LENGTH_MAX) return undefined;
  return {
    message: `${quoted(name)} cannot be the name of an extension: at most ${NAME_LENGTH_MAX} lower-case letters and digits, with single '-' between them`,
  };
}

/**
 * Every `uses` of a pipeline file or of an extension's manifest, each once and in the order of the file; those that could
 * not name an extension are left out. Never throws: of a text that cannot be read it knows none, and parsing says why.
 */
export function usesOf(text: string): string[] {
  // A key can be written otherwise only with a backslash: most files need not be read for this.
  if (!/uses|\\/.test(text)) return [];
  const problems = new Problems();
  const body = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const root = screenText(body, problems) ? readYaml(body, problems) : undefined;
  const stages = root?.kind === 'map' ? root.entries.find(({ key }) => key === 'stages')?.value : undefined;
  const found = new Set<string>();
  for (const { value } of stages?.kind === 'map' ? stages.entries : []) {
    const uses = value.kind === 'map' ? value.entries.find(({ key }) => key === 'uses')?.value : undefined;
    if (uses?.kind === 'scalar' && 'id' in parseUses(uses.text)) found.add(uses.text);
  }
  return [...found];
}
