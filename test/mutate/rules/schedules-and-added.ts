/** Mutants of what starts runs by the clock, and of what stages add to them: P28, P29. */
import type { Check, Mutant } from '../mutant.ts';

const schedules: Check = { tests: 'services/scheduler/test/schedules.test.ts' };
const clocks: Check = { tests: 'services/scheduler/test/schedules-property.test.ts' };
const added: Check = { tests: 'libs/run/test/added-stages.test.ts' };

export const schedulesAndAdded: readonly Mutant[] = [
  {
    rule: 'P28',
    breaks: 'leaves a line on its way for ever where something throws about its tick',
    file: 'services/scheduler/src/partition/ticks.ts',
    find: "it is tried again',\n      );\n      this.#again(due);",
    replace: "it is tried again',\n      );",
    noticedBy: [{ tests: 'services/scheduler/test/ticks.test.ts' }],
  },
  {
    rule: 'P28',
    breaks: 'fires a tick whose run the store knows',
    file: 'services/scheduler/src/partition/ticks.ts',
    find: 'else if (stored.has(each.runId) || isKnown(each.runId)) this.#settle(each, () => this.#record(each));',
    replace: '',
    noticedBy: [schedules],
  },
  {
    rule: 'P28',
    breaks: 'makes a run of a tick without saying in the same commit that it was fired',
    file: 'services/scheduler/src/partition/ticks.ts',
    find: 'this.#host.cycle.addSchedule(schedule, fired, run);',
    replace: 'void [schedule, fired];',
    noticedBy: [schedules],
  },
  {
    rule: 'P28',
    breaks: 'fires for an owner that is not sure any more, by an answer that came late',
    file: 'services/scheduler/src/partition/ticks.ts',
    find: 'mayFire() && schedule.state?.delivery.sequence === due.state.delivery.sequence && present !== undefined;',
    replace: 'schedule.state?.delivery.sequence === due.state.delivery.sequence && present !== undefined;',
    noticedBy: [schedules],
  },
  {
    rule: 'P28',
    breaks: 'fires nothing until a clock that was set back has caught up',
    file: 'libs/run/src/schedule.ts',
    find: 'if (last !== undefined && last <= now && tick <= last) return undefined;',
    replace: 'if (last !== undefined && tick <= last) return undefined;',
    noticedBy: [schedules, clocks],
  },
  {
    rule: 'P28',
    breaks: 'fires a tick from before its file was delivered',
    file: 'libs/run/src/schedule.ts',
    find: 'const tick = newestTick(cron, now);\n  if (tick === undefined || tick < line.from) return undefined;',
    replace: 'const tick = newestTick(cron, now);\n  if (tick === undefined) return undefined;',
    noticedBy: [schedules, clocks],
  },
  {
    rule: 'P28',
    breaks: 'gives a tick another run at each owner',
    file: 'services/scheduler/src/run/schedule-ids.ts',
    find: "random: createHmac('sha256', idKey).update(named).digest()",
    replace: "random: createHmac('sha256', idKey).update(named + String(Math.random())).digest()",
    noticedBy: [schedules, clocks],
  },
  {
    rule: 'P29',
    breaks: 'lets what follows the adding stage begin before the stages that it adds',
    file: 'libs/run/src/added-stages.ts',
    find: 'stages[index] = { ...waiting, dependencies: [...waiting.dependencies, ...places] };',
    replace: 'stages[index] = waiting;',
    noticedBy: [added],
  },
  {
    rule: 'P29',
    breaks: 'takes more stages than a file may have',
    file: 'libs/run/src/added-stages.ts',
    find: 'refuse(plan.stages.length + added.length > stagesMax,',
    replace: 'refuse(added.length > stagesMax,',
    noticedBy: [added],
  },
  {
    rule: 'P29',
    breaks: 'takes what its text means in one run for what it means in another',
    file: 'libs/run/src/added-stages.ts',
    find: 'if (known?.before === plan) return known.after;',
    replace: 'if (known !== undefined) return known.after;',
    noticedBy: [added],
  },
];
