/** What a granted attempt is to execute: the stage's definition with every expression evaluated. */
import { evaluate, renderTemplate, type Expression } from '@penstock/pipeline';
import { scopeOf } from './decide.ts';
import type { Plan } from './plan.ts';
import type { RunState } from './state.ts';

export interface StageWork {
  readonly workspace: 'shared' | 'fresh';
  readonly commands: readonly { readonly script: string; readonly bindings: Readonly<Record<string, string>> }[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir?: string | undefined;
  readonly shell?: string | undefined;
  readonly outputs: readonly string[];
  readonly timeoutMs: number;
}

export function workOf(run: RunState, plan: Plan, stageName: string): StageWork {
  const index = plan.indexOf.get(stageName) ?? -1;
  const definition = plan.stages[index]?.definition;
  if (definition === undefined) throw new RangeError(`there is no stage '${stageName}'`);
  const verdicts = { success: true, failure: false };
  const outer = scopeOf(run, plan, index, verdicts);
  const env: Record<string, string> = {};
  for (const [name, template] of Object.entries(definition.env)) env[name] = renderTemplate(template, { ...outer, env });
  const scope = scopeOf(run, plan, index, verdicts, env);
  const textOf = (expression: Expression): string => {
    const value = evaluate(expression, scope);
    return value === null ? '' : String(value);
  };
  return {
    workspace: definition.workspace,
    commands: definition.commands.map(({ script, bindings }) => ({
      script,
      bindings: Object.fromEntries(Object.entries(bindings).map(([name, expression]) => [name, textOf(expression)])),
    })),
    env,
    ...(definition.workdir === undefined ? {} : { workdir: renderTemplate(definition.workdir, scope) }),
    ...(definition.shell === undefined ? {} : { shell: definition.shell }),
    outputs: definition.outputs,
    timeoutMs: definition.timeoutMs,
  };
}

/** The concurrency group of a new run, evaluated before it has any state; undefined: none. */
export function groupOf(run: Omit<RunState, 'group'>, plan: Plan): string | undefined {
  const template = plan.definition.concurrency?.group;
  if (template === undefined) return undefined;
  const group = renderTemplate(template, scopeOf(run, plan, -1, { success: true, failure: false }));
  return group === '' ? undefined : group;
}
