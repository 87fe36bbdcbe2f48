/** A `.gitlab-ci.yml`: a stage for each job; the jobs of a stage come after all of the stage before, or after what they need. */
import { Conditions, unknownIn } from '../condition.ts';
import { assertFewStages, nameApart, newDraft, newStage, stageName, type Draft, type DraftStage } from '../draft.ts';
import { GITLAB_VARIABLES } from '../host-variables.ts';
import type { Ledger } from '../ledger.ts';
import { axesOf } from '../axes.ts';
import { finishScript } from '../script-stage.ts';
import { letSkippedPass } from '../skipped.ts';
import {
  markSeen,
  take,
  takeAll,
  takeMap,
  takeText,
  takeTexts,
  textsOf,
  type SourceMap,
  type SourceNode,
} from '../source.ts';
import { escaped, mayFailAlone, missing, variablesOf } from '../shell-text.ts';
import { takeFlag } from '../words.ts';
import { durationOf } from './duration.ts';
import { Extended } from './extended.ts';
import { jobCondition, type StartByHand } from './job-condition.ts';
import type { JobContext } from './job-context.ts';
import { keepCaches, keepFiles } from './job-files.ts';
import { placeJob } from './job-place.ts';
import { retryOn } from './retry.ts';
import type { RuleNames } from './rules.ts';

const GLOBAL = new Set([
  'stages',
  'variables',
  'default',
  'workflow',
  'include',
  'image',
  'services',
  'before_script',
  'after_script',
  'cache',
  'spec',
  'types',
]);
const DEFAULTS = [
  'after_script',
  'artifacts',
  'before_script',
  'cache',
  'image',
  'interruptible',
  'retry',
  'services',
  'tags',
  'timeout',
] as const;
const DEFAULT_STAGES = ['.pre', 'build', 'test', 'deploy', '.post'];
const DEFAULT_BRANCH = 'main';
/** Each is a stage. */
const PARALLEL_MAX = 50;
const UNTOLD = [
  'coverage',
  'interruptible',
  'inherit',
  'stage',
  'extends',
  'dast_configuration',
  'manual_confirmation',
] as const;

export function fromGitlab(root: SourceMap, ledger: Ledger, name: string): Draft {
  const draft = newDraft(name);
  new GitlabFile(draft, root, ledger).translate();
  return draft;
}

interface GivenVariable {
  readonly text: string;
  readonly isPlain: boolean;
}

interface Job {
  readonly id: string;
  readonly line: number;
  readonly stage: DraftStage;
  readonly map: SourceMap;
  readonly order: number;
}

class GitlabFile {
  readonly #draft: Draft;
  readonly #root: SourceMap;
  readonly #ledger: Ledger;
  readonly #conditions = new Conditions();
  readonly #variables = new Map<string, string>();
  readonly #exports = new Map<string, string>();
  readonly #default: SourceMap;
  readonly #extended: Extended;
  /** Jobs that somebody starts, by their stages. */
  readonly #byHand = new Map<string, StartByHand>();

  constructor(draft: Draft, root: SourceMap, ledger: Ledger) {
    this.#draft = draft;
    this.#root = root;
    this.#ledger = ledger;
    this.#extended = new Extended(root, ledger);
    const given = takeMap(root, 'default');
    // What stands at the top is a default too, in the old way of writing it.
    this.#default = {
      kind: 'map',
      line: root.line,
      entries: [...root.entries.filter(({ key }) => GLOBAL.has(key)), ...(given?.entries ?? [])],
    };
  }

  translate(): void {
    const root = this.#root;
    for (const [name, { text, isPlain }] of this.#variablesOf(takeMap(root, 'variables'))) {
      this.#variables.set(name, text);
      if (text.includes('$') && !isPlain) this.#exports.set(name, `export ${name}="${shellText(text)}"`);
      else this.#draft.env[name] = text;
    }
    const include = take(root, 'include');
    if (include !== undefined)
      this.#ledger.tell(
        include.line,
        'files that are included',
        'translate them too, and write their jobs into one file',
      );
    take(root, 'spec');
    if (include !== undefined) markSeen(include);
    this.#workflow(takeMap(root, 'workflow'));
    const order = takeTexts(root, 'stages');
    const stages = order.length === 0 ? DEFAULT_STAGES : ['.pre', ...order, '.post'];
    const jobs: Job[] = [];
    const names = new Set<string>();
    this.#conditions.keepApartFrom(root.entries.map(({ key }) => stageName(key)));
    for (const entry of root.entries) {
      if (GLOBAL.has(entry.key)) continue;
      entry.seen = true;
      if (entry.key.startsWith('.')) {
        // What is extended is told where it is used.
        markSeen(entry.value);
        continue;
      }
      if (entry.value.kind !== 'map') {
        this.#ledger.tell(entry.line, `'${entry.key}'`);
        continue;
      }
      const map = this.#extended.whole(entry.value);
      // From here on the job with all that it extends says what is left.
      markSeen(entry.value);
      const stage = newStage(entry.key);
      stage.name = nameApart(stage.name, names);
      names.add(stage.name);
      // Before each of very many is told apart from all others.
      assertFewStages(names.size);
      jobs.push({
        id: entry.key,
        line: entry.line,
        stage,
        map,
        order: Math.max(0, stages.indexOf(takeText(map, 'stage') ?? 'test')),
      });
    }
    jobs.sort((a, b) => a.order - b.order);
    for (const job of jobs) this.#job(job, jobs);
    letSkippedPass(this.#draft);
    this.#addGates(jobs, names);
    const several = this.#draft.stages.length > 1 || this.#draft.stages.some(({ matrix }) => matrix !== undefined);
    if (several) for (const stage of this.#draft.stages) stage.fresh = stage.approval === undefined;
    this.#conditions.finish(this.#draft);
    // A default that no job has asked for, since each has its own.
    for (const key of DEFAULTS) markSeen(take(this.#default, key));
  }

  get #names(): RuleNames {
    return { defaultBranch: DEFAULT_BRANCH, variables: this.#variables };
  }

  #workflow(workflow: SourceMap | undefined): void {
    if (workflow === undefined) return;
    const name = takeText(workflow, 'name');
    if (name !== undefined && !name.includes('$')) this.#draft.name = name;
    const rules = take(workflow, 'rules');
    if (rules !== undefined)
      this.#ledger.tell(
        rules.line,
        'the rules of the whole workflow',
        'say by `on` which pushes and pull requests start the pipeline',
      );
    if (rules !== undefined) markSeen(rules);
    const cancel = takeMap(workflow, 'auto_cancel');
    if (cancel !== undefined) takeAll(cancel);
  }

  /** A variable is a text, or a map with a value and a description. `isPlain`: a dollar in it is a dollar. */
  #variablesOf(map: SourceMap | undefined): readonly (readonly [string, GivenVariable])[] {
    return takeAll(map).flatMap(({ key, value, line }) => {
      if (value.kind === 'text') return [[key, { text: value.text, isPlain: false }] as const];
      if (value.kind !== 'map') return [];
      const text = takeText(value, 'value') ?? '';
      const options = takeTexts(value, 'options');
      takeText(value, 'description');
      const expands = takeFlag(value, 'expand', {
        ledger: this.#ledger,
        of: `the variable ${key}`,
        otherwise: 'the variables in it are read',
      });
      if (options.length > 0)
        this.#ledger.tell(line, `the choices of the variable ${key}`, 'declare it under `inputs`');
      return [[key, { text, isPlain: expands === false }] as const];
    });
  }

  #job(job: Job, jobs: readonly Job[]): void {
    const { stage, map, id } = job;
    const ledger = this.#ledger;
    for (const key of UNTOLD) take(map, key);
    const env = new Map<string, string>();
    const given = this.#variablesOf(takeMap(map, 'variables'));
    // One of the job's own stands in the place of the file's.
    const shared = new Map(this.#exports);
    for (const [name] of given) shared.delete(name);
    const exports = [...shared.values()];
    for (const [name, { text, isPlain }] of given) {
      env.set(name, text);
      if (text.includes('$') && !isPlain) exports.push(`export ${name}="${shellText(text)}"`);
      else stage.env[name] = text;
    }
    this.#parallel(stage, take(map, 'parallel'));
    const context: JobContext = {
      stage,
      ledger,
      defaults: this.#default,
      variables: new Map([...this.#variables, ...env]),
    };
    placeJob(context, map);
    this.#order(job, jobs);
    keepFiles(context, map);
    keepCaches(context, map);
    this.#limits(stage, map, job.line);
    const condition = jobCondition(
      { stage, ledger, names: this.#names, extended: this.#extended, byHand: this.#byHand },
      map,
    );
    if (!this.#conditions.apply(stage, condition, `the rules ${unknownIn(condition)}`))
      ledger.tell(job.line, `the rules of '${id}': ${unknownIn(condition)}`, 'write them as `when`');
    for (const [key, what] of [
      ['environment', 'the environment'],
      ['trigger', 'the pipeline that is started'],
      ['release', 'the release'],
      ['pages', 'the pages'],
      ['secrets', 'secrets of a vault'],
    ] as const) {
      const node = take(map, key);
      if (node === undefined) continue;
      markSeen(node);
      ledger.tell(node.line, `${what} of '${id}'`, key === 'trigger' ? 'start it by the API from a script' : undefined);
    }
    for (const { key, value } of takeAll(takeMap(map, 'id_tokens')))
      for (const audience of value.kind === 'map' ? takeTexts(value, 'aud') : []) {
        if (audience.includes('$')) ledger.tell(value.line, `the audience ${audience} of a token`, 'write it out');
        else stage.idTokens.push({ audience, variable: `${key}_FILE` });
      }
    if (stage.idTokens.length > 0)
      exports.push(
        ...stage.idTokens.map(({ variable }) => `export ${variable.slice(0, -'_FILE'.length)}="$(cat "$${variable}")"`),
      );
    const commands = this.#commands(job);
    const own = new Set([...this.#variables.keys(), ...env.keys(), ...Object.keys(stage.matrix?.axes ?? {})]);
    for (const axis of Object.keys(stage.matrix?.axes ?? {})) stage.env[axis] = `\${{ matrix.${axis} }}`;
    for (const entry of stage.matrix?.include ?? [])
      for (const axis of Object.keys(entry)) stage.env[axis] = `\${{ matrix.${axis} }}`;
    finishScript(
      stage,
      {
        exports: usedOf(exports, commands),
        commands,
        table: GITLAB_VARIABLES,
        prefix: /^(CI|GITLAB)_/,
        own,
        line: job.line,
      },
      ledger,
    );
    this.#draft.stages.push(stage);
    ledger.tellRest(map, id);
  }

  #commands({ id, line, map }: Job): string[] {
    const script = this.#script(map, 'script');
    if (script.length === 0) {
      if (!map.entries.some(({ key }) => key === 'trigger'))
        this.#ledger.tell(
          line,
          `'${id}' has no script in this file`,
          'write what it does as `run`; until then its stage fails',
        );
      // What stands before and after a script does not run without one.
      return [missing('a job without a script')];
    }
    const commands = [...this.#script(map, 'before_script'), ...script];
    const after = this.#script(map, 'after_script');
    if (after.length > 0) {
      const back = CHANGES_ITS_FOLDER.test(commands.join('\n')) ? ['cd "$CI_PROJECT_DIR"'] : [];
      commands.unshift(`trap ${quotedBlock([...back, ...after])} EXIT`);
    }
    return commands;
  }

  #script(map: SourceMap, key: 'before_script' | 'script' | 'after_script'): string[] {
    const own = take(map, key);
    const node = own ?? (key === 'script' ? undefined : take(this.#default, key));
    return node === undefined ? [] : [...this.#extended.texts(node)];
  }

  #parallel(stage: DraftStage, node: SourceNode | undefined): void {
    if (node === undefined) return;
    if (node.kind === 'text') {
      const wanted = Number(node.text);
      const count = Math.min(PARALLEL_MAX, wanted);
      if (!(wanted >= 1) || wanted > count)
        this.#ledger.tell(
          node.line,
          `'parallel: ${node.text}' of '${stage.name}'`,
          `a number from 2 to ${PARALLEL_MAX}`,
        );
      if (!(count > 1)) return;
      stage.matrix = {
        axes: { CI_NODE_INDEX: Array.from({ length: count }, (_, index) => String(index + 1)) },
        include: [],
        exclude: [],
        failFast: false,
      };
      stage.env['CI_NODE_TOTAL'] = String(count);
      return;
    }
    const matrix = node.kind === 'map' ? take(node, 'matrix') : undefined;
    const maps = matrix?.kind === 'list' ? matrix.items.flatMap((item) => (item.kind === 'map' ? [item] : [])) : [];
    const [only] = maps;
    if (only === undefined) return;
    if (maps.length === 1) stage.matrix = { axes: axesOf(only), include: [], exclude: [], failFast: false };
    else
      stage.matrix = {
        axes: {},
        include: maps.flatMap((map) => combinationsOf(axesOf(map))),
        exclude: [],
        failFast: false,
      };
  }

  #order({ stage, map, order }: Job, jobs: readonly Job[]): void {
    const needs = take(map, 'needs');
    const dependencies = take(map, 'dependencies');
    const from = (given: readonly (Job | undefined)[]): void => {
      const names = new Set(stage.artifacts.from);
      for (const before of given)
        if (before !== undefined && keepsFiles(before, this.#default)) names.add(before.stage.name);
      stage.artifacts.from = [...names];
    };
    if (needs !== undefined) {
      for (const item of needs.kind === 'list' ? needs.items : [needs]) {
        const id = item.kind === 'map' ? takeText(item, 'job') : textsOf(item)[0];
        const flagOf = (key: string, otherwise: string): boolean | undefined =>
          item.kind === 'map'
            ? takeFlag(item, key, { ledger: this.#ledger, of: `a need of '${stage.name}'`, otherwise })
            : undefined;
        const optional = flagOf('optional', 'the job has to be there') === true;
        const wantsFiles = flagOf('artifacts', 'the stage gets its files') !== false;
        if (item.kind === 'map')
          for (const { key, line } of takeAll(item))
            if (!['job', 'optional', 'artifacts', 'parallel'].includes(key))
              this.#ledger.tell(line, `'${key}' of a need`);
        const before = jobs.find((job) => job.id === id);
        if (before === undefined) {
          if (!optional && id !== undefined)
            this.#ledger.tell(item.line, `the job '${id}' that '${stage.name}' needs, which is not in this file`);
          continue;
        }
        if (!stage.after.includes(before.stage.name)) stage.after.push(before.stage.name);
        if (wantsFiles) from([before]);
      }
    } else {
      const earlier = jobs.filter((job) => job.order < order && !this.#isOptional(job));
      const last = Math.max(-1, ...earlier.map((job) => job.order));
      stage.after.push(...earlier.filter((job) => job.order === last).map((job) => job.stage.name));
      if (dependencies === undefined) from(earlier);
    }
    if (dependencies !== undefined) {
      stage.artifacts.from = [];
      from(textsOf(dependencies).map((id) => jobs.find((job) => job.id === id)));
    }
  }

  /** A job that somebody may start holds up nobody. */
  #isOptional({ stage }: Job): boolean {
    return this.#byHand.get(stage.name)?.isOptional === true;
  }

  #limits(stage: DraftStage, map: SourceMap, line: number): void {
    const timeout = takeText(map, 'timeout') ?? takeText(this.#default, 'timeout');
    if (timeout !== undefined) {
      stage.timeout = durationOf(timeout, 'h');
      if (stage.timeout === undefined)
        this.#ledger.tell(line, `the time-out ${timeout}`, 'write a duration such as 30m');
    }
    const retry = take(map, 'retry') ?? take(this.#default, 'retry');
    if (retry !== undefined) retryOn({ stage, ledger: this.#ledger }, retry);
    const tags = takeTexts(map, 'tags');
    stage.runsOn.push(
      ...(tags.length > 0 ? tags : takeTexts(this.#default, 'tags')).filter(
        (tag) => !tag.includes('$') && tag !== 'docker',
      ),
    );
    take(this.#default, 'interruptible');
    const group = take(map, 'resource_group');
    if (group !== undefined)
      this.#ledger.tell(
        group.line,
        `the resource group of '${stage.name}'`,
        'runs, not stages, go one at a time by `concurrency`',
      );
  }

  /** A job that somebody starts is a gate before it. `names`: of all jobs, one of which may be called like a gate. */
  #addGates(jobs: readonly Job[], names: Set<string>): void {
    for (const { stage } of jobs) {
      const byHand = this.#byHand.get(stage.name);
      if (byHand === undefined) continue;
      const gate = newStage(`start ${stage.name}`);
      gate.name = nameApart(gate.name, names);
      names.add(gate.name);
      gate.approval = { message: `Start ${stage.name.replaceAll('${{', '{')}?` };
      gate.after = [...stage.after];
      gate.when = stage.when;
      // Where it cannot be said when somebody is asked, somebody always is.
      const asked = this.#conditions.whenOf(byHand.asked) ?? '';
      if (asked === '') {
        stage.after = [gate.name];
        stage.when = undefined;
      } else {
        // Where the gate is skipped the job goes on by itself, and not where somebody has said no.
        const goesOn = stage.when?.startsWith('!failure()') === true;
        this.#conditions.comeAfter(gate, asked);
        gate.when = goesOn ? `!failure() && (${asked})` : asked;
        stage.after = [...gate.after, gate.name];
        if (!goesOn) stage.when = stage.when === undefined ? '!failure()' : `!failure() && (${stage.when})`;
      }
      this.#draft.stages.splice(this.#draft.stages.indexOf(stage), 0, gate);
    }
  }
}

/** Variables that are made of others, as far as the script reads them. */
function usedOf(exports: readonly string[], commands: readonly string[]): readonly string[] {
  const read = new Set(variablesOf(commands.join('\n')));
  const used: string[] = [];
  for (const line of exports.toReversed()) {
    const name = /^export (\w+)=/.exec(line)?.[1] ?? '';
    if (!read.has(name) && !line.includes('$(cat')) continue;
    used.unshift(line);
    for (const other of variablesOf(line)) read.add(other);
  }
  return used;
}

function keepsFiles({ map }: Job, defaults: SourceMap): boolean {
  const own =
    map.entries.find(({ key }) => key === 'artifacts') ?? defaults.entries.find(({ key }) => key === 'artifacts');
  return (
    own?.value.kind === 'map' &&
    own.value.entries.some(({ key, value }) => key === 'paths' && textsOf(value).some((path) => !path.includes('$')))
  );
}

function combinationsOf(axes: Readonly<Record<string, readonly string[]>>): Record<string, string>[] {
  return Object.entries(axes).reduce<Record<string, string>[]>(
    (sets, [axis, values]) => sets.flatMap((set) => values.map((value) => ({ ...set, [axis]: value }))).slice(0, 256),
    [{}],
  );
}

/** `$$` is a dollar; other references stay, for they are the shell's too. Nothing is run there to make a variable. */
function shellText(text: string): string {
  return text
    .split('$$')
    .map((part) => escaped(part, { readsVariables: true }))
    .join(String.raw`\$`);
}

/** An `after_script` begins in the folder of the project, wherever the script has gone. */
const CHANGES_ITS_FOLDER = /\b(cd|pushd)\b/;

function quotedBlock(commands: readonly string[]): string {
  return `'${mayFailAlone(commands.join('\n')).replaceAll("'", String.raw`'\''`)}\ntrue'`;
}
