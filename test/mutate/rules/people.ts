/** Mutants of what people do to runs: P26. */
import type { Check, Mutant } from '../mutant.ts';

const machine: Check = { tests: 'libs/run/test/gates.test.ts' };
const owner: Check = { tests: 'services/scheduler/test/gates.test.ts' };
/** In which gates are frequent enough. */
const worlds: Check = { worlds: 60 };

export const people: readonly Mutant[] = [
  {
    rule: 'P26',
    breaks: 'counts what one person says twice as two people',
    file: 'libs/run/src/gates.ts',
    find: ".filter(({ decision }) => decision === 'approved').map(({ person }) => person)",
    replace: ".filter(({ decision }) => decision === 'approved').map((_, index) => index)",
    noticedBy: [{ tests: 'libs/run/test/gates.test.ts', titles: ['counts people'] }],
  },
  {
    rule: 'P26',
    breaks: 'takes the same decision of the same person a second time',
    file: 'libs/run/src/decide.ts',
    find: 'before.findLast((known) => known.person === person)?.decision === decision',
    replace: 'false',
    noticedBy: [machine, worlds],
  },
  {
    rule: 'P26',
    breaks: 'waits for the quorum although somebody has rejected',
    file: 'libs/run/src/decide.ts',
    find: "if (decision === 'rejected') this.#failUnstarted(at, stage, 'rejected');\n    else if",
    replace: 'if',
    noticedBy: [machine, worlds],
  },
  {
    rule: 'P26',
    breaks: 'gives gates to runners',
    file: 'libs/run/src/gates.ts',
    find: "return status === 'QUEUED' && gateDueAt === undefined;",
    replace: "return status === 'QUEUED';",
    noticedBy: [machine, worlds],
  },
  {
    rule: 'P26',
    breaks: 'keeps the place of a run in which only gates are open',
    file: 'libs/run/src/decide.ts',
    find: "this.effects.push({ type: 'rest' });",
    replace: '',
    noticedBy: [owner, worlds],
  },
  {
    rule: 'P26',
    breaks: 'goes on without a place',
    file: 'libs/run/src/decide.ts',
    find: 'if (this.#run.rested === true) {',
    replace: 'if (this.#run.rested !== true && this.#run.held) {',
    noticedBy: [machine, worlds],
  },
  {
    rule: 'P26',
    breaks: 'lets anybody decide where the file names approvers',
    file: 'services/scheduler/src/partition/gate-decisions.ts',
    find: "if (right === 'forbidden')",
    replace: "if (right === 'forbidden' && approval.approvers === undefined)",
    noticedBy: [owner, worlds],
  },
  {
    rule: 'P26',
    breaks: 'ends gates by the time that stages wait for a runner',
    file: 'libs/run/src/timers.ts',
    find: "if (stage.status === 'QUEUED' && stage.gateDueAt !== undefined) {",
    replace: "if (stage.status === 'PENDING' && stage.gateDueAt !== undefined) {",
    noticedBy: [machine],
  },
];
