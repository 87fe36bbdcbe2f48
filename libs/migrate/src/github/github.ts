/** A workflow of GitHub Actions: a stage for each job, its steps one after the other in one script. */
import { ALWAYS, Conditions, shellOf, type Condition } from '../condition.ts';
import {
  assertFewStages,
  nameApart,
  newDraft,
  newStage,
  stageName,
  type Draft,
  type DraftInput,
  type DraftStage,
} from '../draft.ts';
import { GITHUB_VARIABLES, preludeOf } from '../host-variables.ts';
import type { Ledger } from '../ledger.ts';
import { takeFlag } from '../words.ts';
import {
  take,
  takeAll,
  takeMap,
  takeText,
  takeTexts,
  textEntries,
  textsOf,
  type SourceEntry,
  type SourceMap,
  type SourceNode,
} from '../source.ts';
import { inDoubleQuotes, mayFailAlone, missing, quoted, substituted } from '../shell-text.ts';
import { actionOf, type ActionContext } from './actions.ts';
import { parseExpression } from './expression.ts';
import { axisValues, matrixOf } from './matrix.ts';
import { triggersInto } from './triggers.ts';
import { conditionOf, secretName, shellTextOf, templateOf, type Names } from './values.ts';

const READS_WHAT_FAILED = /\b(always|failure|cancelled)\s*\(/i;
/** In the condition of a step: it is for what has failed or was cancelled before it. */
const FOR_FAILURES = /(?<!!\s*)\b(failure|cancelled)\s*\(/i;

/** Scripts with these change the shell that runs them, and a step has one of its own. */
const CHANGES_ITS_SHELL = /(^|[;&|(\s])(cd|pushd|exit|set|trap|exec|umask)\b/;

export function fromGithub(root: SourceMap, ledger: Ledger, fallbackName: string): Draft {
  const draft = newDraft(takeText(root, 'name') ?? fallbackName);
  const inputs = triggersInto(draft, root, ledger);
  takeAll(takeMap(root, 'permissions'));
  takeText(root, 'run-name');
  const workflow = new Workflow(draft, ledger, inputs);
  workflow.environment(takeMap(root, 'env'));
  workflow.concurrency(take(root, 'concurrency'));
  workflow.jobs(takeMap(root, 'jobs'), takeMap(root, 'defaults'));
  return draft;
}

/** Inputs of a workflow that somebody starts. */
type Inputs = Readonly<Record<string, DraftInput>>;

class Workflow {
  readonly #draft: Draft;
  readonly #ledger: Ledger;
  readonly #inputs: Inputs;
  readonly #conditions = new Conditions();
  readonly #kept = new Map<string, string[]>();
  readonly #stages = new Map<string, string>();
  readonly #manifold = new Set<string>();
  /** What stands in the workflow's `env` and cannot stand in a file of ours. */
  readonly #exports: string[] = [];
  readonly #secrets: Record<string, string> = {};

  constructor(draft: Draft, ledger: Ledger, inputs: Inputs) {
    this.#draft = draft;
    this.#ledger = ledger;
    this.#inputs = inputs;
  }

  environment(env: SourceMap | undefined): void {
    const holder = newStage('env');
    for (const [name, { text, line }] of textEntries(env)) {
      const value = templateOf(text, this.#names());
      if (value !== undefined && !value.includes('stages.')) this.#draft.env[name] = value;
      else this.#exported(name, text, line, holder, this.#exports);
    }
    Object.assign(this.#secrets, holder.secrets);
  }

  concurrency(node: SourceNode | undefined): void {
    if (node === undefined) return;
    const said = node.kind === 'map' ? takeText(node, 'group') : textsOf(node)[0];
    const cancel = node.kind === 'map' ? takeText(node, 'cancel-in-progress') : undefined;
    const group = said === undefined ? undefined : templateOf(said, this.#names());
    if (group === undefined) {
      this.#ledger.tell(
        node.line,
        `the concurrency group ${said ?? ''}`,
        'name one with `run.ref`, `pipeline.name` or `inputs`',
      );
      return;
    }
    if (cancel !== undefined && cancel !== 'true' && cancel !== 'false')
      this.#ledger.tell(node.line, 'cancel-in-progress by an expression', 'it is true or false here');
    this.#draft.concurrency = { group, cancel: cancel === 'true' };
  }

  jobs(jobs: SourceMap | undefined, defaults: SourceMap | undefined): void {
    const entries = takeAll(jobs);
    // Before each of very many is looked at for all that come before it.
    assertFewStages(entries.length);
    const taken = new Set<string>();
    for (const { key } of entries) {
      if (this.#stages.has(key)) continue;
      // Ids that are alike in all that a name may have are two stages, and `needs` means one of them.
      const name = nameApart(stageName(key), taken);
      taken.add(name);
      this.#stages.set(key, name);
    }
    this.#conditions.keepApartFrom(taken);
    for (const { key, value } of entries)
      if (value.kind === 'map' && value.entries.some((one) => one.key === 'strategy')) this.#manifold.add(key);
    const depths = depthsOf(entries);
    const byNeeds = entries.toSorted((a, b) => (depths.get(a.key) ?? 0) - (depths.get(b.key) ?? 0));
    for (const { key, value, line } of byNeeds) {
      if (value.kind === 'map') this.#job(key, value, defaults);
      else this.#ledger.tell(line, `the job '${key}'`);
    }
    if (this.#draft.stages.length > 1 || this.#manifold.size > 0)
      for (const stage of this.#draft.stages) stage.fresh = stage.approval === undefined;
    this.#conditions.finish(this.#draft);
  }

  #names(axes: ReadonlySet<string> = new Set()): Names {
    return {
      inputs: new Set(Object.keys(this.#inputs)),
      env: new Set(Object.keys(this.#draft.env)),
      stages: this.#stages,
      manifold: this.#manifold,
      axes,
      reads: new Map(),
    };
  }

  #job(id: string, job: SourceMap, fileDefaults: SourceMap | undefined): void {
    const ledger = this.#ledger;
    const stage = newStage(this.#stages.get(id) ?? id);
    this.#draft.stages.push(stage);
    take(job, 'name');
    takeAll(takeMap(job, 'permissions'));
    stage.after.push(...takeTexts(job, 'needs').map((need) => this.#stages.get(need) ?? stageName(need)));
    const strategy = takeMap(job, 'strategy');
    stage.matrix = strategy === undefined ? undefined : matrixOf(strategy, ledger);
    const names = this.#names(new Set(axesOf(stage)));
    this.#condition(stage, take(job, 'if'), names);
    this.#place(stage, job, names);
    this.#minutes(stage, job);
    const told = { ledger, of: `'${stage.name}'`, otherwise: 'it may not fail' };
    if (takeFlag(job, 'continue-on-error', told) === true) stage.allowFailure = true;
    this.#environmentGate(stage, job);
    const uses = takeText(job, 'uses');
    if (uses !== undefined) {
      ledger.tell(
        job.line,
        `the reusable workflow ${uses} of the job '${id}'`,
        'write its jobs as stages, or make it an extension of stages',
      );
      takeAll(takeMap(job, 'with'));
      take(job, 'secrets');
      stage.run.push(missing(`the reusable workflow ${uses}`));
      return;
    }
    this.#steps(stage, job, fileDefaults, names);
  }

  #condition(stage: DraftStage, node: SourceNode | undefined, names: Names): void {
    const [text] = node === undefined ? [] : textsOf(node);
    if (text === undefined || node === undefined) return;
    if (!this.#conditions.apply(stage, conditionOf(text, names), `the condition ${text}`))
      this.#ledger.tell(node.line, `the condition of '${stage.name}': ${text}`, 'write it as `when`');
  }

  #place(stage: DraftStage, job: SourceMap, names: Names): void {
    const labels = takeTexts(job, 'runs-on');
    stage.runsOn.push(...labels.filter((label) => !isOrdinary(label) && !label.includes('${{')));
    for (const label of labels) {
      if (!label.includes('${{')) continue;
      const template = templateOf(label, names);
      const axis = /matrix\.([\w-]+)/.exec(template ?? '')?.[1];
      if (template === undefined)
        this.#ledger.tell(job.line, `the runner ${label} of '${stage.name}'`, 'name labels under `runs_on`');
      else if (axis === undefined || axisValues(stage.matrix, axis).some((value) => !isOrdinary(value)))
        stage.runsOn.push(template);
    }
    const container = take(job, 'container');
    if (container?.kind === 'text') stage.image = templateOf(container.text, names) ?? container.text;
    if (container?.kind === 'map') {
      const image = takeText(container, 'image');
      stage.image = image === undefined ? undefined : (templateOf(image, names) ?? image);
      for (const [name, { text, line }] of textEntries(takeMap(container, 'env')))
        this.#variable(stage, name, text, line, names);
    }
    for (const { key, value } of takeAll(takeMap(job, 'services'))) {
      if (value.kind !== 'map') continue;
      const image = takeText(value, 'image') ?? '';
      const env: Record<string, string> = {};
      for (const [name, { text, line }] of textEntries(takeMap(value, 'env'))) {
        const said = templateOf(text, names);
        if (said === undefined)
          this.#ledger.tell(line, `the variable ${name} of the service '${key}'`, 'a service gets no secrets');
        else env[name] = said;
      }
      const ports = take(value, 'ports');
      if (ports !== undefined && stage.image === undefined)
        this.#ledger.tell(ports.line, `ports of the service '${key}' on localhost`, `the stage reaches it as '${key}'`);
      const options = take(value, 'options');
      if (options !== undefined)
        this.#ledger.tell(options.line, `the options of the service '${key}'`, 'say when it may be used by `ready`');
      stage.services[
        key
          .toLowerCase()
          .replaceAll(/[^a-z0-9-]/g, '-')
          .slice(0, 63)
      ] = {
        image: templateOf(image, names) ?? image,
        env,
      };
    }
  }

  #minutes(stage: DraftStage, job: SourceMap): void {
    const text = takeText(job, 'timeout-minutes');
    if (text === undefined) return;
    const minutes = Math.ceil(Number(text));
    if (Number.isFinite(minutes) && minutes > 0) stage.timeout = `${Math.min(minutes, 10_080)}m`;
    else this.#ledger.tell(job.line, `the time-out ${text} of '${stage.name}'`, 'write a duration such as 30m');
  }

  /** Who protects an environment by reviewers has a gate here. */
  #environmentGate(stage: DraftStage, job: SourceMap): void {
    const node = take(job, 'environment');
    if (node === undefined) return;
    const name = node.kind === 'map' ? takeText(node, 'name') : textsOf(node)[0];
    if (node.kind === 'map') takeAll(node);
    this.#ledger.tell(
      node.line,
      `the environment '${name ?? ''}' of '${stage.name}'`,
      'where it asks for reviewers, put a stage with `approval` before',
    );
  }

  #steps(stage: DraftStage, job: SourceMap, fileDefaults: SourceMap | undefined, names: Names): void {
    const defaults = [takeMap(job, 'defaults'), fileDefaults].map((one) =>
      one === undefined ? undefined : takeMap(one, 'run'),
    );
    const workdir = defaults
      .map((one) => (one === undefined ? undefined : takeText(one, 'working-directory')))
      .find(Boolean);
    const shell = defaults.map((one) => (one === undefined ? undefined : takeText(one, 'shell'))).find(Boolean);
    const exports: string[] = [...this.#exports];
    Object.assign(stage.secrets, this.#secrets);
    for (const [name, { text, line }] of textEntries(takeMap(job, 'env')))
      this.#variable(stage, name, text, line, names, exports);
    const outputs = textEntries(takeMap(job, 'outputs'));
    const list = take(job, 'steps');
    const steps = (list?.kind === 'list' ? list.items : []).flatMap((item) => (item.kind === 'map' ? [item] : []));
    const script: string[] = [];
    for (const step of steps) script.push(...this.#step(stage, step, { workdir, shell, names }));
    for (const [name, { text, line }] of outputs) {
      const value = this.#shellText(text, stage, names, line);
      script.push(...readsOf(value, names), `printf '%s\\n' "${name}=${value}" >>"$SERVICE_OUTPUT"`);
      stage.outputs.push(name);
    }
    this.#finish(stage, exports, script, shell ?? 'bash');
  }

  #finish(stage: DraftStage, exports: readonly string[], script: readonly string[], shell: string): void {
    const text = [...exports, ...script].join('\n');
    const prelude = preludeOf([text], GITHUB_VARIABLES, {
      prefix: /^(GITHUB|RUNNER)_/,
      own: new Set([...Object.keys(stage.env), 'GITHUB_ENV', 'GITHUB_PATH', 'GITHUB_OUTPUT']),
      stage: stage.name,
    });
    Object.assign(stage.env, prelude.env);
    for (const name of prelude.unknown)
      this.#ledger.tell(
        1,
        `the variable $${name}, which '${stage.name}' reads`,
        'set it under `env`, if there is something like it',
      );
    const files = /\b(GITHUB_(ENV|PATH|OUTPUT)|STEP_FILES)\b/.test(text)
      ? [
          'STEP_FILES=$(mktemp -d)',
          'export GITHUB_ENV="$STEP_FILES/env" GITHUB_PATH="$STEP_FILES/path" GITHUB_OUTPUT="$STEP_FILES/output"',
          'touch "$GITHUB_ENV" "$GITHUB_PATH"',
        ]
      : [];
    const commands = [...prelude.commands, ...files, ...exports, ...script];
    if (script.length === 0) stage.run = stage.artifacts.from.length > 0 ? [] : ['true'];
    else stage.run = commands;
    if (stage.run.length === 0) stage.run = ['true'];
    if (/^(bash|sh)\b/.test(shell)) stage.shell = /alpine|busybox/.test(stage.image ?? '') ? 'sh' : shell.split(' ')[0];
    else stage.shell = 'bash';
    if (stage.run.length === 1 && stage.run[0] === 'true') stage.shell = undefined;
  }

  #step(
    stage: DraftStage,
    step: SourceMap,
    {
      workdir,
      shell,
      names,
    }: { readonly workdir: string | undefined; readonly shell: string | undefined; readonly names: Names },
  ): readonly string[] {
    const ledger = this.#ledger;
    const title = takeText(step, 'name');
    const id = takeText(step, 'id');
    const condition = takeText(step, 'if');
    const told = { ledger, of: `the step '${title ?? id ?? 'run'}'`, otherwise: 'it may not fail' };
    const mayFail = takeFlag(step, 'continue-on-error', told) === true;
    const ownWorkdir = takeText(step, 'working-directory') ?? workdir;
    const ownShell = takeText(step, 'shell') ?? shell;
    const before: string[] = [];
    for (const [name, { text, line }] of textEntries(takeMap(step, 'env'))) {
      const value = this.#shellText(text, stage, names, line);
      if (value !== `\${${name}}`) before.push(`export ${name}="${value}"`);
    }
    const minutes = takeText(step, 'timeout-minutes');
    if (minutes !== undefined)
      ledger.tell(
        step.line,
        `the time-out of the step '${title ?? id ?? 'run'}'`,
        'a stage has a `timeout`, or use the program timeout',
      );
    const commands = this.#commands(stage, step, names, title);
    if (commands.length === 0) return [];
    const body = [...commands];
    if (body.length === 1 && body[0]?.startsWith("echo 'not translated") === true) return body;
    if (ownShell !== undefined && !/^(bash|sh)\b/.test(ownShell)) {
      ledger.tell(
        step.line,
        `the shell ${ownShell} of the step '${title ?? id ?? 'run'}'`,
        'a stage has one shell; put this step into a stage of its own',
      );
      return [...headed(title), missing(`a step for ${ownShell}`)];
    }
    const place = ownWorkdir === undefined ? undefined : this.#shellText(ownWorkdir, stage, names, step.line);
    const lines = [
      ...(place === undefined ? [] : [`cd "${place}"`]),
      ...readsOf([...before, ...body].join('\n'), names),
      ...before,
      ...body,
    ];
    const needsOwn = place !== undefined || before.length > 0 || CHANGES_ITS_SHELL.test(body.join('\n'));
    let text = lines.join('\n');
    if (mayFail) text = `${mayFailAlone(text)}\nset -e`;
    else if (needsOwn) text = `(\n${text}\n)`;
    if (condition !== undefined) text = this.#guarded(text, condition, step.line, { ...names, stage }, title ?? id);
    return [...headed(title), ...(id === undefined ? [] : this.#outputsOf(id)), text, ...afterStep(text)];
  }

  #commands(stage: DraftStage, step: SourceMap, names: Names, title: string | undefined): readonly string[] {
    const script = takeText(step, 'run');
    if (script !== undefined) return [this.#script(script.trimEnd(), stage, names, step.line)];
    const uses = takeText(step, 'uses');
    if (uses === undefined) return [];
    const given = takeMap(step, 'with');
    const action = actionOf(uses);
    if (action === undefined) {
      takeAll(given);
      this.#ledger.tell(step.line, `the action ${uses}`, 'write what it does as commands, or use an extension');
      return [missing(`${title === undefined ? '' : `${title}: `}${uses}`)];
    }
    const context: ActionContext = {
      stage,
      ledger: this.#ledger,
      step,
      given,
      template: (text) => templateOf(text, names),
      shellText: (text) => this.#shellText(text, stage, names, step.line),
      kept: this.#kept,
    };
    return action(context);
  }

  /** Each step with an id has a file of its own for what it puts out. */
  #outputsOf(id: string): readonly string[] {
    return [`export GITHUB_OUTPUT="$STEP_FILES/${outputFile(id)}"; touch "$GITHUB_OUTPUT"`];
  }

  #guarded(text: string, condition: string, line: number, names: Names, title: string | undefined): string {
    const said: Condition = conditionOf(condition, names);
    const isForFailures = FOR_FAILURES.test(condition);
    const shell = shellOf(this.#withTrigger(said)) ?? (isForFailures ? 'false' : undefined);
    if (shell === undefined || READS_WHAT_FAILED.test(condition))
      this.#ledger.tell(
        line,
        `the condition of the step '${title ?? 'run'}': ${condition}`,
        shell === undefined
          ? 'write it as an `if` of the shell, or as a stage with `when`'
          : 'nothing runs behind a step that failed: put it into a stage with `when`',
      );
    if (shell === undefined) return `${missing(`a step with the condition ${condition}`)}\n${text}`;
    if (shell === 'true') return text;
    return [...readsOf(shell, names), `if ${shell}; then\n${text}\nfi`].join('\n');
  }

  /** In a script what began the run is known by an expression. */
  #withTrigger(condition: Condition): Condition {
    if (condition.kind === 'fact' && condition.shell?.includes('$TRIGGER') === true) {
      const stage = this.#draft.stages.at(-1);
      if (stage !== undefined) stage.env['TRIGGER'] = '${{ run.trigger }}';
    }
    if (condition.kind === 'not') return { kind: 'not', of: this.#withTrigger(condition.of) };
    if (condition.kind === 'and' || condition.kind === 'or')
      return { kind: condition.kind, sides: condition.sides.map((side) => this.#withTrigger(side)) };
    return condition.kind === 'always' ? ALWAYS : condition;
  }

  #variable(stage: DraftStage, name: string, text: string, line: number, names: Names, exports?: string[]): void {
    const secret = /^\$\{\{\s*secrets\.(\w+)\s*\}\}$/.exec(text)?.[1];
    if (secret !== undefined) {
      stage.secrets[name] = secretName(secret);
      return;
    }
    const value = templateOf(text, names);
    if (value !== undefined) stage.env[name] = value;
    else if (exports === undefined) this.#ledger.tell(line, `the variable ${name} of '${stage.name}'`);
    else this.#exported(name, text, line, stage, exports);
  }

  #exported(name: string, text: string, line: number, stage: DraftStage, exports: string[]): void {
    const secret = /^\$\{\{\s*secrets\.(\w+)\s*\}\}$/.exec(text)?.[1];
    if (secret !== undefined) stage.secrets[name] = secretName(secret);
    else exports.push(`export ${name}="${this.#shellText(text, stage, this.#names(new Set(axesOf(stage))), line)}"`);
  }

  /** A script with references to variables in place of expressions; what has no counterpart is told and left empty. */
  #script(text: string, stage: DraftStage, names: Names, line: number): string {
    return substituted(text, (inner) => this.#reference(inner, stage, names, line));
  }

  /** The same of a text, for the inside of double quotes. */
  #shellText(text: string, stage: DraftStage, names: Names, line: number): string {
    return inDoubleQuotes(text, (inner) => this.#reference(inner, stage, names, line));
  }

  #reference(inner: string, stage: DraftStage, names: Names, line: number): string {
    const expression = parseExpression(inner);
    const value = expression === undefined ? undefined : shellTextOf(expression, names, stage);
    if (value === undefined)
      this.#ledger.tell(line, `the expression \${{ ${inner} }}`, 'put the value into a variable');
    return value ?? '';
  }
}

/** What is read of steps before must be there as variables. */
function readsOf(text: string, { reads }: Names): readonly string[] {
  return [...reads].flatMap(([variable, [step, output]]) =>
    text.includes(`\${${variable}}`)
      ? [
          `${variable}=$(sed -n ${quoted(`s/^${output}=//p`)} "$STEP_FILES/${outputFile(step)}" 2>/dev/null | tail -n 1)`,
        ]
      : [],
  );
}

function outputFile(step: string): string {
  return `output-${step.replaceAll(/[^\w-]/g, '_')}`;
}

function afterStep(text: string): readonly string[] {
  return [
    ...(text.includes('GITHUB_ENV') ? ['while IFS= read -r line; do export "$line"; done <"$GITHUB_ENV"'] : []),
    ...(text.includes('GITHUB_PATH')
      ? ['while IFS= read -r folder; do PATH="$folder:$PATH"; done <"$GITHUB_PATH"']
      : []),
  ];
}

function headed(title: string | undefined): readonly string[] {
  return title === undefined ? [] : [`# ${title.replaceAll(/\s+/g, ' ').replaceAll('${{', '{')}`];
}

/** A runner that any of ours is. */
function isOrdinary(label: string): boolean {
  return /^(ubuntu-(latest|[\d.]+)|self-hosted|linux|x64)$/i.test(label);
}

function axesOf(stage: DraftStage): readonly string[] {
  return [
    ...Object.keys(stage.matrix?.axes ?? {}),
    ...(stage.matrix?.include ?? []).flatMap((entry) => Object.keys(entry)),
  ];
}

/** How many jobs come before each, by the longest way: a job stands behind all that it needs. */
function depthsOf(jobs: readonly SourceEntry[]): ReadonlyMap<string, number> {
  const byId = new Map(jobs.map((job) => [job.key, job.value]));
  const depths = new Map<string, number>();
  const depthOf = (id: string): number => {
    const known = depths.get(id);
    if (known !== undefined) return known;
    // A circle ends here, and is refused as one of the pipeline file.
    depths.set(id, 0);
    const job = byId.get(id);
    const needs = job?.kind === 'map' ? job.entries.find(({ key }) => key === 'needs') : undefined;
    const before = needs === undefined ? [] : textsOf(needs.value).map(depthOf);
    const depth = before.length === 0 ? 0 : Math.max(...before) + 1;
    depths.set(id, depth);
    return depth;
  };
  for (const { key } of jobs) depthOf(key);
  return depths;
}
