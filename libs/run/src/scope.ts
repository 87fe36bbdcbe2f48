/** What a stage's expressions see, and the environment that is made of it. */
import { renderTemplate, type ExpressionScope } from '@penstock/pipeline';
import { isTrusted, triggerOf } from './origin.ts';
import type { Plan } from './plan.ts';
import type { RunState } from './state.ts';

type Verdicts = Pick<ExpressionScope, 'success' | 'failure' | 'onText' | 'compared'>;

/**
 * Hears texts, and throws where all of them come to more. A text that is put together is not written out before its characters are
 * looked at, as a comparison does: so long as it is only counted, its length costs nothing.
 */
export function countTexts(max: number, error: () => Error): (text: string) => void {
  let length = 0;
  return (text) => {
    length += text.length;
    if (length > max) throw error();
  };
}

/** The stage's environment, in the order of the file: a variable sees those before it. `text` sees each value first. */
export function environmentOf(
  run: RunState,
  plan: Plan,
  index: number,
  verdicts: Verdicts,
  text: (value: string) => string = (value) => value,
): Record<string, string> {
  // Without a prototype: `__proto__` is a variable as any other.
  const env = Object.create(null) as Record<string, string>;
  const scope = { ...scopeOf(run, plan, index, verdicts), env };
  for (const [name, template] of Object.entries(plan.stages[index]?.definition.env ?? {}))
    env[name] = text(renderTemplate(template, scope));
  return env;
}

/** What a stage's expressions see: itself, the run, and the stages that have ended. */
export function scopeOf(
  run: RunState,
  plan: Plan,
  index: number,
  verdicts: Verdicts,
  env: Readonly<Record<string, string>> = {},
): ExpressionScope {
  return {
    stages: new Proxy({}, stagesOf(run, plan)),
    matrix: plan.stages[index]?.definition.matrix?.values ?? {},
    env,
    run: {
      id: run.id,
      trusted: String(isTrusted(run.origin)),
      trigger: triggerOf(run.origin),
      ref: run.origin.ref ?? '',
      commit: run.origin.commit ?? '',
      actor: run.origin.actor ?? '',
    },
    pipeline: { name: run.pipelineName },
    webhook: {
      repository: run.origin.repository ?? '',
      ref: run.origin.ref ?? '',
      commit: run.origin.commit ?? '',
      provider: run.origin.provider ?? '',
    },
    inputs: run.inputs ?? {},
    ...verdicts,
  };
}

type StagesInScope = ExpressionScope['stages'];

/** Looked up by name when asked: a record of 2,000 stages for each expression would be most of the work. */
function stagesOf(run: RunState, plan: Plan): ProxyHandler<StagesInScope> {
  const lookUp = (name: string | symbol): StagesInScope[string] | undefined => {
    const stage = typeof name === 'string' ? run.stages.get(plan.indexOf.get(name) ?? -1) : undefined;
    return stage && { status: stage.status, outputs: stage.outputs ?? {} };
  };
  return {
    get: (_target, name) => lookUp(name),
    has: (_target, name) => lookUp(name) !== undefined,
    getOwnPropertyDescriptor: (_target, name) => {
      const value = lookUp(name);
      return value && { value, enumerable: true, configurable: true };
    },
  };
}
