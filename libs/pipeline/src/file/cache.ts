/** Reads `cache` of a stage: a map with a key and paths, or a list of such maps. */
import type { Expression, Template } from '../model/definition.ts';
import type { CacheDefinition } from '../model/cache.ts';
import { fieldOf, mustBe, readKeys, readList, readScalar, type Field } from './fields.ts';
import { globFault, readGlobs } from './globs.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import { readTemplate, type ExpressionReader, type ExpressionSite } from './template.ts';
import { CACHE_KEYS } from './vocabulary.ts';
import type { MapNode, ScalarNode } from '../yaml/yaml-tree.ts';

const WANTED = "a map with 'key' and 'paths', or a list of them";

export function readCaches(
  field: Field,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): readonly CacheDefinition<Template>[] | undefined {
  const { node, problems, path } = field;
  if (node.kind === 'map') return present([readCache(node, path, reader, sites)]);
  if (node.kind === 'scalar') {
    mustBe(field, WANTED);
    return undefined;
  }
  if (node.items.length === 0) problems.add(node, path, "'cache' has no entries", 'leave the key out');
  if (node.items.length > PIPELINE_LIMITS.cachesMax) {
    problems.add(node, path, `'cache' has more than ${PIPELINE_LIMITS.cachesMax} entries`);
    return undefined;
  }
  return present(
    node.items.map((item) => {
      if (item.kind === 'map') return readCache(item, path, reader, sites);
      mustBe({ ...field, node: item }, WANTED);
      return undefined;
    }),
  );
}

function present(caches: readonly (CacheDefinition<Template> | undefined)[]): readonly CacheDefinition<Template>[] {
  return caches.filter((cache) => cache !== undefined);
}

function readCache(
  map: MapNode,
  path: string,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): CacheDefinition<Template> | undefined {
  const { problems } = reader;
  const keys = readKeys(map, CACHE_KEYS, "in 'cache'", path, problems);
  const missing = (key: string, example: string): void =>
    problems.add(map.entries[0]?.keySpan ?? map, path, `'cache' has no '${key}'`, `such as '${example}'`);
  const inner = (key: (typeof CACHE_KEYS)[number]): Field | undefined => {
    const found = keys.get(key);
    return found === undefined ? undefined : fieldOf(found, path, problems);
  };
  const texts = (value: Field, wanted: string, countMax: number): Template[] | undefined => {
    const nodes = readList(value, wanted, countMax);
    if (nodes?.length === 0)
      problems.add(value.node, value.path, `'${value.name}' has no entries`, 'leave the key out');
    return nodes?.map((node) => readKey(node, value, reader, sites));
  };
  const [key, paths, restore] = [inner('key'), inner('paths'), inner('restore')];
  if (key === undefined) missing('key', "key: npm-${{ hash('package-lock.json') }}");
  if (paths === undefined) missing('paths', 'paths: [node_modules, ~/.npm]');
  const keyNode =
    key === undefined ? undefined : readScalar(key, "a text such as npm-${{ hash('package-lock.json') }}");
  const template = key === undefined || keyNode === undefined ? undefined : readKey(keyNode, key, reader, sites);
  const patterns = paths === undefined ? undefined : readPaths(paths);
  const others =
    restore === undefined
      ? []
      : texts(restore, 'the beginning of a key, or a list of them', PIPELINE_LIMITS.restoreMax);
  if (template === undefined || patterns === undefined || others === undefined) return undefined;
  return { key: template, paths: patterns, restore: others };
}

function readKey(
  node: ScalarNode,
  { path, problems, name }: Field,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): Template {
  const { cacheKeyLengthMax } = PIPELINE_LIMITS;
  if (node.text === '' || node.text.length > PIPELINE_LIMITS.expressionLengthMax || /\p{Cc}/u.test(node.text))
    problems.add(node, path, `'${name}' must be a text of 1 to ${cacheKeyLengthMax} characters on one line`);
  const own: ExpressionSite[] = [];
  const template = readTemplate(node, 'cache', path, reader, own);
  for (const site of own) for (const pattern of hashedBy(site.parsed.expression)) checkHashed(pattern, site, problems);
  sites.push(...own);
  return template;
}

/** The patterns of a call of `hash`. */
function hashedBy(expression: Expression): string[] {
  if (expression.kind !== 'call') return [];
  return expression.arguments.map((argument) => (argument.kind === 'literal' ? String(argument.value) : ''));
}

function checkHashed(pattern: string, site: ExpressionSite, problems: Field['problems']): void {
  const [call] = site.parsed.calls;
  if (call === undefined) return;
  const fault = globFault(pattern) ?? placeFault(pattern);
  if (fault !== undefined) problems.add(site.spanOf(call), site.path, `the pattern ${quoted(pattern)} ${fault}`);
}

/** `~/` leads to the stage's home; no other path leaves the working folder. */
function readPaths(field: Field): string[] | undefined {
  const { problems, path, node } = field;
  const paths = readGlobs(field);
  if (paths === undefined) return undefined;
  const nodes = node.kind === 'list' ? node.items : [node];
  for (const [index, pattern] of paths.entries()) {
    const fault = placeFault(pattern.replace(/^(!?)~\//, '$1'));
    if (fault !== undefined)
      problems.add(
        nodes[index] ?? node,
        path,
        `the path ${quoted(pattern)} ${fault}`,
        "a path begins with a name in the working folder, or with '~/' for one in the stage's home",
      );
  }
  if (paths.length > 0 && paths.every((pattern) => pattern.startsWith('!')))
    problems.add(node, path, "all 'paths' begin with '!', so that nothing would ever be kept");
  return paths;
}

function placeFault(pattern: string): string | undefined {
  const plain = pattern.replace(/^!/, '');
  if (plain.startsWith('/') || plain.startsWith('~')) return 'must be told from the working folder';
  if (plain.split('/').some((part) => part === '..' || part === '.')) return "must be written without '.' and '..'";
  return undefined;
}
