/** `on` of a workflow. */
import type { Draft, DraftInput, DraftPushFilter } from '../draft.ts';
import type { Ledger } from '../ledger.ts';
import { takeFlag, takeWord } from '../words.ts';
import { take, takeAll, takeMap, takeText, takeTexts, textsOf, type SourceMap, type SourceNode } from '../source.ts';

const FILTERS = ['branches', 'branches-ignore', 'tags', 'tags-ignore', 'paths', 'paths-ignore'] as const;
const TYPES = new Set(['opened', 'synchronize', 'reopened', 'ready_for_review', 'labeled']);

/** Fills in what starts the pipeline, and its inputs, which it also returns. */
export function triggersInto(draft: Draft, root: SourceMap, ledger: Ledger): Readonly<Record<string, DraftInput>> {
  const on = take(root, 'on');
  draft.hasOn = true;
  const events: [string, SourceNode | undefined, number][] =
    on?.kind === 'map'
      ? takeAll(on).map(({ key, value, line }) => [key, value, line])
      : textsOf(on ?? root).map((event) => [event, undefined, on?.line ?? 1]);
  for (const [event, node, line] of events) eventInto(draft, event, node, line, ledger);
  if (draft.push === undefined && draft.pullRequest === undefined && draft.schedules.length === 0 && events.length > 0)
    ledger.tell(
      on?.line ?? 1,
      'a workflow that no push and no pull request starts',
      'start it by `penstock trigger`, `penstock dispatch` or the API',
    );
  return draft.inputs;
}

function eventInto(draft: Draft, event: string, node: SourceNode | undefined, line: number, ledger: Ledger): void {
  const map = node?.kind === 'map' ? node : undefined;
  if (event === 'push') draft.push = filterOf(map) ?? true;
  else if (event === 'pull_request' || event === 'pull_request_target') {
    if (event === 'pull_request_target')
      ledger.tell(
        line,
        'pull_request_target, which runs the file of the target',
        'here the file is that of the head; see `approveRun` and trust',
      );
    draft.pullRequest = pullRequestOf(map, ledger) ?? true;
  } else if (event === 'schedule') {
    const items = node?.kind === 'list' ? node.items : [];
    for (const item of items) {
      const cron = item.kind === 'map' ? takeText(item, 'cron') : undefined;
      if (cron !== undefined) draft.schedules.push(cron);
      if (item.kind === 'map' && takeText(item, 'timezone') !== undefined)
        ledger.tell(item.line, 'the time zone of a schedule', 'lines are in UTC');
    }
  } else if (event === 'workflow_dispatch' || event === 'workflow_call') {
    for (const { key, value } of takeAll(map === undefined ? undefined : takeMap(map, 'inputs')))
      draft.inputs[key] = inputOf(value, `the input '${key}'`, ledger);
    if (map !== undefined && event === 'workflow_call') {
      for (const { value } of takeAll(takeMap(map, 'secrets'))) if (value.kind === 'map') takeAll(value);
      const outputs = take(map, 'outputs');
      if (outputs !== undefined)
        ledger.tell(outputs.line, 'outputs of a reusable workflow', 'make it an extension of stages');
    }
  } else {
    takeAll(map);
    ledger.tell(
      line,
      `the event '${event}'`,
      'pushes, pull requests, schedules and calls of the API start pipelines here',
    );
  }
}

function filterOf(map: SourceMap | undefined): DraftPushFilter | undefined {
  if (map === undefined) return undefined;
  const filter: DraftPushFilter = {};
  for (const key of FILTERS) {
    const patterns = takeTexts(map, key);
    if (patterns.length > 0) filter[key] = [...patterns];
  }
  return Object.keys(filter).length === 0 ? undefined : filter;
}

function pullRequestOf(
  map: SourceMap | undefined,
  ledger: Ledger,
): Exclude<Draft['pullRequest'], true | undefined> | undefined {
  if (map === undefined) return undefined;
  const { branches, ...others } = filterOf(map) ?? {};
  const ignored = others['paths-ignore']?.map((pattern) => `!${pattern}`);
  const paths = others.paths ?? (ignored === undefined ? undefined : ['**', ...ignored]);
  if (others['branches-ignore'] !== undefined)
    ledger.tell(map.line, 'branches-ignore of pull requests', 'name branches, with ! for those that are left out');
  const said = takeTexts(map, 'types');
  const types = said.filter((type) => TYPES.has(type));
  for (const type of said) if (!TYPES.has(type)) ledger.tell(map.line, `pull requests that are ${type}`);
  const filter = {
    ...(branches === undefined ? {} : { branches }),
    ...(paths === undefined ? {} : { paths }),
    ...(types.length === 0 ? {} : { types }),
  };
  return Object.keys(filter).length === 0 ? undefined : filter;
}

function inputOf(node: SourceNode, of: string, ledger: Ledger): DraftInput {
  if (node.kind !== 'map') return {};
  const type = takeWord(node, 'type', {
    ledger,
    of,
    words: ['string', 'number', 'boolean', 'choice'],
    otherwise: 'it is a text',
  });
  const required = takeFlag(node, 'required', { ledger, of, otherwise: 'it may be left out' });
  const options = takeTexts(node, 'options');
  const said = takeText(node, 'default');
  const description = takeText(node, 'description')?.replaceAll(/\s+/g, ' ').trim();
  takeText(node, 'deprecationMessage');
  return {
    ...(type === 'number' || type === 'boolean' ? { type } : {}),
    ...(type === 'choice' && options.length > 0 ? { type, options: [...options] } : {}),
    ...(description === undefined || description === '' ? {} : { description }),
    ...(required === true && said === undefined ? { required: true } : {}),
    ...(said === undefined ? {} : { default: said }),
  };
}
