/** Mutants of runs that repeat others: P30. */
import type { Check, Mutant } from '../mutant.ts';

const machine: Check = { tests: 'libs/run/test/rerun.test.ts' };
const generators: Check = { tests: 'libs/run/test/adopted-generators.test.ts' };
const owner: Check = { tests: 'services/scheduler/test/reruns.test.ts' };
const journal: Check = { tests: 'services/scheduler/test/rerun-generators.test.ts' };
/** In which reruns are frequent enough. */
const worlds: Check = { worlds: 60 };

export const reruns: readonly Mutant[] = [
  {
    rule: 'P30',
    breaks: 'begins before all is there that it takes over',
    file: 'libs/run/src/adoptions.ts',
    find: 'return adoptionsLeft > 0 && !isEnded(status);',
    replace: 'return false;',
    noticedBy: [machine, owner],
  },
  {
    rule: 'P30',
    breaks: 'runs again what is taken over',
    file: 'libs/run/src/decide.ts',
    find: "if (adopted.length > 0) this.#emit({ type: 'stages_adopted', at, adopted });",
    replace: "if (adopted.length > 0) this.#emit({ type: 'stages_adopted', at, adopted: adopted.slice(1) });",
    noticedBy: [machine, worlds],
  },
  {
    rule: 'P30',
    breaks: 'takes stages over without their outputs',
    file: 'libs/run/src/adoptions.ts',
    find: '...(outputs === undefined ? {} : { outputs }),',
    replace: '',
    noticedBy: [machine, worlds],
  },
  {
    rule: 'P30',
    breaks: 'takes over a stage without what it has added',
    file: 'libs/run/src/decide.ts',
    find: 'if (added === undefined) continue;',
    replace: 'if (added !== undefined) continue;',
    noticedBy: [generators, worlds],
  },
  {
    rule: 'P30',
    breaks: 'takes over what a stage has added though something runs that it comes after',
    file: 'libs/run/src/rerun.ts',
    find: '  runGeneratorsAgain(adopted, whole.plan);\n',
    replace: '',
    noticedBy: [generators],
  },
  {
    rule: 'P30',
    breaks: 'takes over gates before what runs',
    file: 'libs/run/src/rerun.ts',
    find: '  askAgain(adopted, whole.plan);\n',
    replace: '',
    noticedBy: [machine],
  },
  {
    rule: 'P30',
    breaks: 'cancels the run that the run was made from which it repeats',
    file: 'libs/run/src/lineage.ts',
    find: '|| lineage.live?.includes(runId) === true',
    replace: '',
    noticedBy: [owner],
  },
  {
    rule: 'P30',
    breaks: 'reads a parent as it stands now, and not as it stood',
    file: 'services/scheduler/src/partition/adoptions.ts',
    find: 'foldRun(id, planOf(definition), events, version)',
    replace: 'foldRun(id, parent.plan, events, version)',
    noticedBy: [journal],
  },
];
