/** Reads what stands beside `stages`: the pipeline's own name, its triggers and its concurrency group. */
import type {
  EventFilters,
  PipelineDefinition,
  PullRequestFilter,
  PullRequestType,
  PushFilter,
  Template,
} from '../model/definition.ts';
import { readGlobs } from './globs.ts';
import {
  fieldOf,
  isNull,
  mustBe,
  oneOf,
  readBoolean,
  readKeys,
  readList,
  readMap,
  readName,
  readScalar,
  readWord,
} from './fields.ts';
import type { Field } from './fields.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { printable } from '../text/printable.ts';
import { hasExpression, readTemplate } from './template.ts';
import type { ExpressionReader, ExpressionSite } from './template.ts';
import {
  CONCURRENCY_KEYS,
  ON_KEYS,
  PIPELINE_KEYS,
  PULL_REQUEST_KEYS,
  PULL_REQUEST_TYPES,
  PUSH_KEYS,
} from './vocabulary.ts';

/** Any text, but one that can be shown: the specification gives it no meaning. */
export function readEngine(field: Field): string | undefined {
  const node = readScalar(field, 'a text');
  if (node === undefined) return undefined;
  if (node.text.length <= PIPELINE_LIMITS.engineLengthMax && printable(node.text) === node.text) return node.text;
  mustBe(field, `a text of at most ${PIPELINE_LIMITS.engineLengthMax} characters on one line`);
  return undefined;
}

export function readPipelineKeys(field: Field): { name: string | undefined; description: string | undefined } {
  const { problems, path } = field;
  const map = readMap(field, "a map with 'name'");
  if (map === undefined) return { name: undefined, description: undefined };
  const keys = readKeys(map, PIPELINE_KEYS, "in 'pipeline'", path, problems);
  const [name, description] = [keys.get('name'), keys.get('description')];
  if (name === undefined) problems.add(map.entries[0]?.keySpan ?? map, path, "'pipeline.name' is missing");
  return {
    name:
      name === undefined
        ? undefined
        : readName(fieldOf(name, path, problems), 'a text', PIPELINE_LIMITS.pipelineNameLengthMax),
    description: description === undefined ? undefined : readDescription(fieldOf(description, path, problems)),
  };
}

function readDescription(field: Field): string | undefined {
  const node = readScalar(field, 'a text');
  if (node === undefined) return undefined;
  const { problems, path } = field;
  if (node.text.length > PIPELINE_LIMITS.descriptionLengthMax)
    problems.add(node, path, `'description' is longer than ${PIPELINE_LIMITS.descriptionLengthMax} characters`);
  else if (/(?![\n\t])\p{Cc}/u.test(node.text)) problems.add(node, path, "'description' holds control characters");
  else if (hasExpression(node.text)) problems.add(node, path, "'description' cannot hold an expression");
  return node.text;
}

export function readOn(field: Field): EventFilters | undefined {
  const { problems, path } = field;
  if (field.node.kind !== 'map') {
    mustBe(
      field,
      "a map with 'push' or 'pull_request'",
      "write 'on: {push: {branches: main}}', or leave 'on' out for every event",
    );
    return undefined;
  }
  const keys = readKeys(field.node, ON_KEYS, "in 'on'", path, problems);
  const read = <Filter>(key: (typeof ON_KEYS)[number], use: (of: Field) => Filter): Filter | undefined => {
    const entry = keys.get(key);
    // `push:` with nothing after it: every push.
    if (entry === undefined || isNull(entry.value)) return undefined;
    return use(fieldOf(entry, path, problems));
  };
  const push = read('push', readPush);
  const pullRequest = read('pull_request', readPullRequest);
  return {
    ...(keys.has('push') ? { push: push ?? {} } : {}),
    ...(keys.has('pull_request') ? { pullRequest: pullRequest ?? {} } : {}),
  };
}

function readPullRequest(field: Field): PullRequestFilter | undefined {
  const { problems, path } = field;
  const map = readMap(field, "a map with 'branches', 'paths' or 'types'");
  if (map === undefined) return undefined;
  const keys = readKeys(map, PULL_REQUEST_KEYS, "in 'on.pull_request'", path, problems);
  const read = <Value>(key: (typeof PULL_REQUEST_KEYS)[number], use: (of: Field) => Value): Value | undefined => {
    const entry = keys.get(key);
    return entry === undefined ? undefined : use(fieldOf(entry, path, problems));
  };
  const branches = read('branches', readGlobs);
  const paths = read('paths', readGlobs);
  const types = read('types', readTypes);
  const cancel = read('cancel_superseded', readBoolean);
  return {
    ...(branches === undefined ? {} : { branches }),
    ...(paths === undefined ? {} : { paths }),
    ...(types === undefined ? {} : { types }),
    ...(cancel === false ? { cancelSuperseded: false } : {}),
  };
}

function readTypes(field: Field): PullRequestType[] | undefined {
  const nodes = readList(field, `${oneOf(PULL_REQUEST_TYPES)}, or a list of them`, PULL_REQUEST_TYPES.length);
  if (nodes === undefined) return undefined;
  if (nodes.length === 0)
    field.problems.add(field.node, field.path, "'types' has no entries, so that nothing would ever match");
  return nodes.flatMap((node) => readWord({ ...field, node }, PULL_REQUEST_TYPES) ?? []);
}

function readPush(field: Field): PushFilter | undefined {
  const { problems, path } = field;
  const map = readMap(field, "a map with 'branches', 'tags' or 'paths'");
  if (map === undefined) return undefined;
  const keys = readKeys(map, PUSH_KEYS, "in 'on.push'", path, problems);
  const globs = (key: (typeof PUSH_KEYS)[number]): readonly string[] | undefined => {
    const found = keys.get(key);
    return found === undefined ? undefined : readGlobs(fieldOf(found, path, problems));
  };
  for (const key of ['branches', 'tags', 'paths'] as const) {
    const other = keys.get(`${key}-ignore`);
    if (keys.has(key) && other !== undefined)
      problems.add(
        other.keySpan,
        path,
        `'${key}' and '${key}-ignore' cannot stand together`,
        `begin a pattern of '${key}' with '!' to take it out again`,
      );
  }
  const filter = {
    branches: globs('branches'),
    branchesIgnore: globs('branches-ignore'),
    tags: globs('tags'),
    tagsIgnore: globs('tags-ignore'),
    paths: globs('paths'),
    pathsIgnore: globs('paths-ignore'),
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

export function readConcurrency(
  field: Field,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): PipelineDefinition['concurrency'] {
  const { problems, path } = field;
  const map = readMap(field, "a map with 'group'");
  if (map === undefined) return undefined;
  const keys = readKeys(map, CONCURRENCY_KEYS, "in 'concurrency'", path, problems);
  const [group, cancel] = [keys.get('group'), keys.get('cancel_in_progress')];
  const cancelInProgress = cancel === undefined ? false : (readBoolean(fieldOf(cancel, path, problems)) ?? false);
  if (group === undefined) {
    problems.add(map.entries[0]?.keySpan ?? map, path, "'concurrency' has no 'group'");
    return undefined;
  }
  const template = readGroup(fieldOf(group, path, problems), reader, sites);
  return template === undefined ? undefined : { group: template, cancelInProgress };
}

function readGroup(field: Field, reader: ExpressionReader, sites: ExpressionSite[]): Template | undefined {
  const node = readScalar(field, 'a text');
  if (node === undefined) return undefined;
  if (node.text.trim() === '' || node.text.length > PIPELINE_LIMITS.groupLengthMax || /\p{Cc}/u.test(node.text)) {
    field.problems.add(
      node,
      field.path,
      `'group' must be a text of 1 to ${PIPELINE_LIMITS.groupLengthMax} characters on one line`,
    );
    return undefined;
  }
  return readTemplate(node, 'group', field.path, reader, sites);
}
