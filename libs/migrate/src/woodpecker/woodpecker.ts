/** A workflow of Woodpecker: a stage for each step, one after the other in one folder. */
import { lookup } from '../lookup.ts';
import {
  ALWAYS,
  all,
  any,
  branchIs,
  Conditions,
  IS_TAG,
  tagIs,
  triggerIs,
  unknownIn,
  type Condition,
} from '../condition.ts';
import { assertFewStages, nameApart, newDraft, newStage, stageName, type Draft, type DraftStage } from '../draft.ts';
import { axesOf } from '../axes.ts';
import { WOODPECKER_VARIABLES } from '../host-variables.ts';
import type { Ledger } from '../ledger.ts';
import { finishScript } from '../script-stage.ts';
import { letSkippedPass } from '../skipped.ts';
import { escaped, quoted, variableName } from '../shell-text.ts';
import { takeFlag, takeWord } from '../words.ts';
import { startsInto } from './starts.ts';
import {
  markSeen,
  take,
  takeAll,
  takeMap,
  takeText,
  takeTexts,
  textEntries,
  textsOf,
  UnreadableSource,
  type SourceEntry,
  type SourceMap,
  type SourceNode,
} from '../source.ts';

const EVENTS: Readonly<Record<string, Condition>> = lookup({
  push: all([triggerIs('push'), { kind: 'not', of: IS_TAG }]),
  pull_request: triggerIs('pull_request'),
  tag: IS_TAG,
  cron: triggerIs('schedule'),
  manual: triggerIs('api'),
});

/** Services are those of each step here. */
const SERVED_MAX = 100_000;

export function fromWoodpecker(root: SourceMap, ledger: Ledger, name: string): Draft {
  const draft = newDraft(name);
  new WoodpeckerFile(draft, root, ledger).translate();
  return draft;
}

class WoodpeckerFile {
  readonly #draft: Draft;
  readonly #root: SourceMap;
  readonly #ledger: Ledger;
  readonly #conditions = new Conditions();
  /** Variables that an image may be made of: axes of the matrix. */
  #axes: readonly string[] = [];

  constructor(draft: Draft, root: SourceMap, ledger: Ledger) {
    this.#draft = draft;
    this.#root = root;
    this.#ledger = ledger;
  }

  translate(): void {
    const root = this.#root;
    const ledger = this.#ledger;
    for (const key of ['variables', 'version']) markSeen(take(root, key));
    const matrix = this.#matrix(takeMap(root, 'matrix'));
    this.#axes = [
      ...new Set([...Object.keys(matrix?.axes ?? {}), ...(matrix?.include ?? []).flatMap((one) => Object.keys(one))]),
    ];
    startsInto(this.#draft, take(root, 'when') ?? take(root, 'branches'), ledger);
    for (const [key, what, remedy] of [
      ['depends_on', 'other workflows that come before', 'write their steps into one file'],
      ['runs_on', 'the state of other workflows', 'use `when: failure()` in one file'],
      ['clone', 'how the repository is cloned', 'a stage has the files of its commit'],
      ['workspace', 'the folder of the workspace', 'stages work in the working folder of their run'],
    ] as const) {
      const node = take(root, key);
      if (node === undefined) continue;
      markSeen(node);
      ledger.tell(node.line, what, remedy);
    }
    take(root, 'skip_clone');
    const labels = [
      ...textEntries(takeMap(root, 'labels')).map(([key, { text }]) => (key === 'platform' ? text : `${key}=${text}`)),
      ...takeTexts(root, 'platform'),
    ]
      .map((label) => label.split('/').pop() ?? label)
      .filter((label) => !['amd64', ''].includes(label));
    const services = this.#services(take(root, 'services'));
    const steps = stepsOf(take(root, 'steps') ?? take(root, 'pipeline'));
    // Before each of very many is told apart from all others.
    assertFewStages(steps.length);
    if (Object.keys(services).length * steps.length > SERVED_MAX)
      throw new UnreadableSource('its services beside each of its steps are too much for a pipeline file');
    this.#conditions.keepApartFrom(steps.map(({ key }) => stageName(key)));
    const byName = new Set<string>();
    const names = new Map<string, string>();
    const needed = new Map<DraftStage, readonly string[]>();
    const usesOrder = steps.some(
      ({ value }) => value.kind === 'map' && value.entries.some(({ key }) => key === 'depends_on'),
    );
    let before: DraftStage | undefined;
    for (const { key, value, line } of steps) {
      if (value.kind !== 'map') {
        ledger.tell(line, `the step '${key}'`);
        continue;
      }
      const stage = newStage(key);
      stage.name = nameApart(stage.name, byName);
      if (this.#isDetached(stage, value, services)) continue;
      byName.add(stage.name);
      if (!names.has(key)) names.set(key, stage.name);
      const needs = takeTexts(value, 'depends_on');
      if (usesOrder) needed.set(stage, needs);
      else if (before !== undefined) stage.after.push(before.name);
      before = stage;
      stage.runsOn.push(...labels);
      stage.matrix = matrix;
      Object.assign(stage.services, services);
      this.#step(stage, value, line);
      this.#draft.stages.push(stage);
    }
    // Steps that are alike in all that a name may have are two stages, and one of them is meant.
    for (const [stage, needs] of needed) stage.after.push(...needs.map((need) => names.get(need) ?? stageName(need)));
    if (matrix !== undefined) this.#joinWithinMatrix();
    letSkippedPass(this.#draft);
    this.#conditions.finish(this.#draft);
  }

  /**
   * There every combination is a workflow of its own, in a folder of its own. Steps of one image that follow each other are one
   * stage here, so that they are that too.
   */
  #joinWithinMatrix(): void {
    const { stages } = this.#draft;
    for (let index = stages.length - 1; index > 0; index--) {
      const [before, stage] = [stages[index - 1], stages[index]];
      if (before === undefined || stage === undefined || !isLike(before, stage)) continue;
      before.run.push(...stage.run);
      Object.assign(before.env, stage.env);
      Object.assign(before.secrets, stage.secrets);
      for (const other of stages) other.after = other.after.map((name) => (name === stage.name ? before.name : name));
      before.after = before.after.filter((name) => name !== before.name);
      stages.splice(index, 1);
    }
    for (const stage of stages) stage.fresh = true;
    if (stages.length > 1)
      this.#ledger.tell(
        this.#root.line,
        'a matrix of a whole workflow: each stage waits for all combinations of the one before, and has a folder of its own',
        'write the steps that belong together as one stage, or keep files under `artifacts`',
      );
  }

  #matrix(map: SourceMap | undefined): DraftStage['matrix'] {
    if (map === undefined) return undefined;
    const include = take(map, 'include');
    const combinations = (include?.kind === 'list' ? include.items : []).flatMap((item) =>
      item.kind === 'map' ? [Object.fromEntries(textEntries(item).map(([key, { text }]) => [key, text]))] : [],
    );
    const axes = axesOf({ ...map, entries: map.entries.filter(({ key }) => key !== 'include') });
    if (combinations.length === 0 && Object.keys(axes).length === 0) return undefined;
    return { axes, include: combinations, exclude: [], failFast: false };
  }

  #services(node: SourceNode | undefined): Record<string, { image: string; env: Record<string, string> }> {
    const services: Record<string, { image: string; env: Record<string, string> }> = {};
    for (const { key, value, line } of stepsOf(node))
      if (value.kind === 'map') services[serviceName(key)] = this.#service(key, value, line);
    return services;
  }

  #service(key: string, map: SourceMap, line: number): { image: string; env: Record<string, string> } {
    const written = takeText(map, 'image') ?? '';
    const image = this.#imageName(written) ?? written;
    for (const word of ['pull', 'detach', 'ports', 'name']) markSeen(take(map, word));
    const environment = take(map, 'environment');
    const env = this.#plainVariables(environment, line, `the service '${key}'`);
    markSeen(environment);
    const commands = take(map, 'commands');
    if (commands !== undefined)
      this.#ledger.tell(commands.line, `the commands of the service '${key}'`, 'a service runs what its image runs');
    return { image, env };
  }

  #plainVariables(node: SourceNode | undefined, line: number, of: string): Record<string, string> {
    const env: Record<string, string> = {};
    for (const [name, text] of variablesOfNode(node)) {
      if (text === undefined || /\$\{?\w/.test(text))
        this.#ledger.tell(line, `the variable ${name} of ${of}`, 'a service gets plain texts');
      else env[name] = text.replaceAll('$$', '$');
    }
    return env;
  }

  /** A step that goes on beside the others is a service of them. */
  #isDetached(
    stage: DraftStage,
    map: SourceMap,
    services: Record<string, { image: string; env: Record<string, string> }>,
  ): boolean {
    const told = { ledger: this.#ledger, of: `the step '${stage.name}'`, otherwise: 'it is waited for' };
    if (takeFlag(map, 'detach', told) !== true) return false;
    services[serviceName(stage.name)] = this.#service(stage.name, map, map.line);
    return true;
  }

  #step(stage: DraftStage, map: SourceMap, line: number): void {
    const ledger = this.#ledger;
    take(map, 'name');
    const condition = this.#when(take(map, 'when'), `the step '${stage.name}'`);
    const unknown = unknownIn(condition);
    const what = `the condition of '${stage.name}'${unknown === '' ? '' : `: ${unknown}`}`;
    if (!this.#conditions.apply(stage, condition, what)) ledger.tell(line, what, 'write it as `when`');
    const image = takeText(map, 'image') ?? '';
    const failure = takeWord(map, 'failure', {
      ledger,
      of: `the step '${stage.name}'`,
      words: ['ignore', 'fail', 'cancel'],
      otherwise: 'it may not fail',
    });
    if (failure === 'ignore') stage.allowFailure = true;
    take(map, 'pull');
    const directory = takeText(map, 'directory');
    if (directory !== undefined) stage.workdir = directory.replace(/^\.\//, '');
    for (const [key, what, remedy] of [
      ['privileged', 'the privileges', 'no stage gets privileges that a container could pass on'],
      ['volumes', 'folders of the machine that are mounted', 'a stage sees its working folder'],
      ['backend_options', 'options of the backend', 'see `resources` and `network`'],
      ['entrypoint', 'the entrypoint', 'see `image: {name, entrypoint}`'],
      ['group', 'the group', 'stages without `after` go side by side'],
      ['devices', 'devices of the machine', undefined],
      ['dns', 'its name servers', undefined],
      ['extra_hosts', 'names of hosts', undefined],
    ] as const) {
      const node = take(map, key);
      if (node === undefined) continue;
      markSeen(node);
      ledger.tell(node.line, `${what} of '${stage.name}'`, remedy);
    }
    const exports = this.#environment(stage, map);
    const settings = takeMap(map, 'settings');
    const commands = takeTexts(map, 'commands').map(shellScript);
    if (settings !== undefined && commands.length === 0) this.#plugin(stage, image, settings, line);
    const name = this.#imageName(image);
    if (name === undefined)
      ledger.tell(
        line,
        `the image ${image} of '${stage.name}'`,
        'an image is a plain text, or made of the values of a matrix',
      );
    else if (image !== '' && image !== 'bash') stage.image = name;
    for (const axis of this.#axes) stage.env[axis] = `\${{ matrix.${axis} }}`;
    const entrypoint = stage.entrypoint === undefined && commands.length === 0 && settings === undefined;
    if (entrypoint) commands.push("echo 'not translated: a step that runs what its image runs' >&2; exit 1");
    if (entrypoint)
      ledger.tell(line, `the step '${stage.name}' without commands`, 'write the command that its image runs');
    if (settings !== undefined && commands.length === 0) return;
    finishScript(
      stage,
      { exports, commands, table: WOODPECKER_VARIABLES, prefix: /^(CI|DRONE)_/, own: new Set(this.#axes), line },
      ledger,
    );
  }

  /** A plugin is an image that is told by variables what to do; its own entrypoint is not known here. */
  #plugin(stage: DraftStage, image: string, settings: SourceMap, line: number): void {
    for (const [name, text] of variablesOfNode(settings)) {
      const variable = variableName('plugin', name);
      if (text === undefined) {
        const secret = secretOf(settings, name);
        if (secret === undefined)
          this.#ledger.tell(
            line,
            `the setting '${name}' of '${stage.name}', which is no plain text`,
            `set ${variable}`,
          );
        else stage.secrets[variable] = secret;
      } else if (/\$\{?\w/.test(text))
        this.#ledger.tell(line, `the setting '${name}' of '${stage.name}', which has variables`, `set ${variable}`);
      else stage.env[variable] = text;
    }
    markSeen(settings);
    this.#ledger.tell(
      line,
      `what the plugin ${image} runs`,
      'write the program of its image as `run`; its settings are there as variables',
    );
    stage.run = [`echo ${quoted(`not translated: the plugin ${image}`)} >&2; exit 1`];
  }

  #environment(stage: DraftStage, map: SourceMap): readonly string[] {
    const exports: string[] = [];
    const environment = take(map, 'environment');
    for (const [name, text] of variablesOfNode(environment)) {
      const secret = environment?.kind === 'map' ? secretOf(environment, name) : undefined;
      if (secret !== undefined) stage.secrets[name] = secret;
      else if (text === undefined) this.#ledger.tell(map.line, `the variable ${name} of '${stage.name}'`);
      else if (/\$\{?\w/.test(text.replaceAll('$$', '')))
        exports.push(
          `export ${name}="${text
            .split('$$')
            .map((part) => escaped(part, { readsVariables: true }))
            .join(String.raw`\$`)}"`,
        );
      else stage.env[name] = text.replaceAll('$$', '$');
    }
    markSeen(environment);
    const secrets = take(map, 'secrets');
    for (const item of secrets?.kind === 'list' ? secrets.items : []) {
      const source = item.kind === 'map' ? takeText(item, 'source') : textsOf(item)[0];
      const target = item.kind === 'map' ? takeText(item, 'target') : source;
      if (source !== undefined) stage.secrets[(target ?? source).toUpperCase()] = source.toUpperCase();
    }
    return exports;
  }

  #imageName(text: string): string | undefined {
    let isKnown = true;
    const name = text.replaceAll(/\$\{?(\w+)\}?/g, (_, variable: string) => {
      if (this.#axes.includes(variable)) return `\${{ matrix.${variable} }}`;
      isKnown = false;
      return '';
    });
    return isKnown ? name : undefined;
  }

  #when(node: SourceNode | undefined, of: string): Condition {
    if (node === undefined) return ALWAYS;
    if (node.kind === 'list' && node.items.every(({ kind }) => kind === 'map'))
      return any(node.items.map((item) => this.#when(item, of)));
    if (node.kind !== 'map') return this.#patterns(node, branchIs);
    const parts: Condition[] = [];
    const event = take(node, 'event');
    if (event !== undefined) parts.push(this.#events(event));
    const branch = take(node, 'branch');
    if (branch !== undefined) {
      parts.push(this.#patterns(branch, branchIs));
      const events = event === undefined || event.kind === 'map' ? ['pull_request'] : textsOf(event);
      if (events.includes('pull_request'))
        this.#ledger.tell(
          branch.line,
          `the target of pull requests, by 'branch' of ${of}`,
          'say it by `on: pull_request: branches`',
        );
    }
    const tag = take(node, 'tag');
    if (tag !== undefined) parts.push(all([IS_TAG, this.#patterns(tag, tagIs)]));
    const ref = take(node, 'ref');
    if (ref !== undefined)
      parts.push(
        this.#patterns(ref, (text) =>
          text.startsWith('refs/tags/') ? tagIs(text.slice(10)) : branchIs(text.replace(/^refs\/heads\//, '')),
        ),
      );
    const status = takeTexts(node, 'status');
    const unknown = status.find((word) => word !== 'success' && word !== 'failure');
    if (unknown !== undefined) parts.push({ kind: 'unknown', text: `status: ${unknown}` });
    if (status.includes('failure'))
      parts.push({ kind: 'fact', when: status.includes('success') ? 'always()' : 'failure()' });
    const matrix = takeMap(node, 'matrix');
    for (const [axis, { text }] of textEntries(matrix))
      parts.push({ kind: 'fact', when: `matrix.${axis} == '${text.replaceAll("'", "''")}'` });
    for (const { key, line, value } of node.entries) {
      if (['event', 'branch', 'tag', 'ref', 'status', 'matrix'].includes(key)) continue;
      take(node, key);
      markSeen(value);
      this.#ledger.tell(
        line,
        `the condition '${key}' of ${of}`,
        key === 'path'
          ? 'filter pushes by `on: paths`'
          : key === 'cron'
            ? 'write the line under `schedule`'
            : 'write it as `when`',
      );
    }
    return all(parts);
  }

  #events(node: SourceNode): Condition {
    const texts = node.kind === 'map' ? [] : textsOf(node);
    if (node.kind === 'map') {
      const include = takeTexts(node, 'include');
      const exclude = takeTexts(node, 'exclude');
      const parts: Condition[] = [];
      if (include.length > 0) parts.push(any(include.map((text) => this.#event(text, node.line))));
      if (exclude.length > 0) parts.push({ kind: 'not', of: any(exclude.map((text) => this.#event(text, node.line))) });
      return all(parts);
    }
    return any(texts.map((text) => this.#event(text, node.line)));
  }

  #event(text: string, line: number): Condition {
    const known = EVENTS[text];
    if (known !== undefined) return known;
    this.#ledger.tell(
      line,
      `the event '${text}'`,
      'pushes, pull requests, schedules and calls of the API start pipelines here',
    );
    return { kind: 'fact', when: 'false' };
  }

  #patterns(node: SourceNode, condition: (pattern: string) => Condition): Condition {
    if (node.kind !== 'map') return any(textsOf(node).map(condition));
    const include = takeTexts(node, 'include');
    const exclude = takeTexts(node, 'exclude');
    return all([
      ...(include.length === 0 ? [] : [any(include.map(condition))]),
      ...(exclude.length === 0 ? [] : [{ kind: 'not', of: any(exclude.map(condition)) } as const]),
    ]);
  }
}

function isLike(before: DraftStage, stage: DraftStage): boolean {
  const [only, ...more] = stage.after;
  return (
    more.length === 0 &&
    only === before.name &&
    before.image === stage.image &&
    before.when === stage.when &&
    before.workdir === stage.workdir &&
    !before.allowFailure &&
    !stage.allowFailure
  );
}

/** Steps are a map by their names, or a list of maps with names. */
function stepsOf(node: SourceNode | undefined): readonly SourceEntry[] {
  if (node?.kind === 'map') return takeAll(node);
  if (node?.kind !== 'list') return [];
  return node.items.map((item, index) => ({
    key: (item.kind === 'map' ? takeText(item, 'name') : undefined) ?? `step ${index + 1}`,
    line: item.line,
    value: item,
    seen: true,
  }));
}

/** A map, or a list of `NAME=value`; undefined where a value is no text. */
function variablesOfNode(node: SourceNode | undefined): readonly (readonly [string, string | undefined])[] {
  if (node?.kind === 'list')
    return textsOf(node).map((text) => {
      const at = text.indexOf('=');
      return at === -1 ? ([text, ''] as const) : ([text.slice(0, at), text.slice(at + 1)] as const);
    });
  if (node?.kind !== 'map') return [];
  return node.entries.map(({ key, value }) => [
    key,
    value.kind === 'text'
      ? value.text
      : value.kind === 'list' && value.items.every(({ kind }) => kind === 'text')
        ? textsOf(value).join(',')
        : undefined,
  ]);
}

function secretOf(map: SourceMap, name: string): string | undefined {
  const value = map.entries.find(({ key }) => key === name)?.value;
  return value?.kind === 'map' ? takeText(value, 'from_secret')?.toUpperCase() : undefined;
}

function serviceName(text: string): string {
  return (
    text
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]/g, '-')
      .slice(0, 63)
      .replaceAll(/^-+|-+$/g, '') || 'service'
  );
}

/** There `$$` is a dollar for the shell; what stands with one dollar is replaced before, by texts that the shell has as variables here. */
function shellScript(text: string): string {
  return text.replaceAll('$$', '$');
}
