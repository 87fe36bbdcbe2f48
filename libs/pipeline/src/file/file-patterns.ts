/** Reads patterns over files of a stage: told from its working folder. */
import { quoted } from '../text/printable.ts';
import type { Field } from './fields.ts';
import { readGlobs } from './globs.ts';

/** `of`: the key that asks for the files. A pattern that leaves the working folder would never match. */
export function readFilePatterns(field: Field, of: string): string[] | undefined {
  const { problems, path, node } = field;
  const paths = readGlobs(field);
  if (paths === undefined) return undefined;
  const nodes = node.kind === 'list' ? node.items : [node];
  for (const [index, pattern] of paths.entries()) {
    const plain = pattern.replace(/^!/, '');
    const at = nodes[index] ?? node;
    if (plain.startsWith('/') || plain.startsWith('~'))
      problems.add(
        at,
        path,
        `the pattern ${quoted(pattern)} must be told from the working folder`,
        'begin it with a name',
      );
    else if (plain.split('/').some((part) => part === '..' || part === '.'))
      problems.add(
        at,
        path,
        `the pattern ${quoted(pattern)} must stay within the working folder`,
        "write it without '.' and '..'",
      );
  }
  if (paths.length > 0 && paths.every((pattern) => pattern.startsWith('!')))
    problems.add(node, path, `all patterns of '${of}' begin with '!', so that nothing would ever be kept`);
  return paths;
}
