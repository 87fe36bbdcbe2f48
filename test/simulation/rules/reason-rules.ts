/** Nothing waits without a reason: what an owner says that a run waits for, held against the run's own state, which is committed. */
import { awaitsRunner, isEnded, isOpenGate, type RunState, type RunWaits, type Wait } from '@penstock/run';

type Fail = (message: string) => void;

/** What the server itself stands in the way with; it may come beside everything that an owner decides. */
const OF_THE_SERVER: ReadonlySet<string> = new Set(['store', 'broker']);

/** `canBePaused`: somebody pauses things in this world. */
export function checkReasons(
  run: RunState,
  told: RunWaits,
  canBePaused: boolean,
  fail: Fail,
  mark: (name: string) => void,
): void {
  const ofStage = new Map(told.stages);
  const isRepeated = told.stages === undefined;
  let anyWaits = false;
  for (const stage of run.stages) {
    const waits =
      isRepeated && !isEnded(stage.status) && stage.status !== 'RUNNING' ? told.waits : (ofStage.get(stage.name) ?? []);
    const isWaiting = !isEnded(run.status) && (stage.status === 'PENDING' || stage.status === 'QUEUED');
    anyWaits ||= isWaiting;
    if (isWaiting !== waits.length > 0)
      fail(`stage ${stage.name}, which is ${stage.status}, is said to wait for ${kindsOf(waits) || 'nothing'}`);
    for (const wait of waits) {
      mark(`waits for ${wait.kind}`);
      if ((wait.position ?? 1) < 1) fail(`stage ${stage.name} waits at position ${wait.position ?? 0}`);
    }
    if (isWaiting && !isRepeated) checkStage(run, stage.name, waits, canBePaused, fail);
  }
  // One of which nothing can be restored has no stages.
  anyWaits ||= run.held && !isEnded(run.status);
  if (anyWaits !== told.waits.length > 0) fail(`as a whole it waits for ${kindsOf(told.waits) || 'nothing'}`);
  if (isRepeated) checkHeld(run, told.waits, fail);
}

function checkHeld(run: RunState, waits: readonly Wait[], fail: Fail): void {
  if (run.adoptionsLeft !== undefined) {
    if (!waits.some(({ kind }) => kind === 'store'))
      fail(`takes over what is not there, and waits for ${kindsOf(waits)}`);
    return;
  }
  const expected = run.awaitsApproval === true ? ['approval'] : ['quota', 'concurrency'];
  if (!run.held) fail('is said to be held, and is not');
  const own = waits.filter(({ kind }) => !OF_THE_SERVER.has(kind));
  // Its turn may have come, and not be committed.
  if (own.length === 0 && waits.length > 0) return;
  if (own.length !== 1 || !expected.includes(own[0]?.kind ?? '')) fail(`is held, and waits for ${kindsOf(waits)}`);
  if (own[0]?.holder === run.id) fail('waits for itself');
}

function checkStage(run: RunState, name: string, waits: readonly Wait[], canBePaused: boolean, fail: Fail): void {
  const { plan } = run.stages;
  const index = plan.indexOf.get(name) ?? -1;
  const stage = run.stages.get(index);
  const planned = plan.stages[index];
  if (stage === undefined || planned === undefined) return;
  const open = planned.dependencies.filter((before) => !isEnded(run.stages.statusOf(before) ?? 'PENDING'));
  const expect = (...kinds: readonly string[]): void => {
    if (!waits.some(({ kind }) => kinds.includes(kind)))
      fail(`stage ${name} waits for ${kinds.join(' or ')}, and is said to wait for ${kindsOf(waits)}`);
  };
  if (isOpenGate(stage)) expect('approval');
  else if (awaitsRunner(stage) && run.held) expect('quota', 'concurrency', 'broker');
  else if (awaitsRunner(stage)) expect('runner', 'no_runner', ...(canBePaused ? ['paused'] : []));
  else if (stage.dueAt !== undefined) expect('backoff');
  else if (open.length > 0) {
    expect('dependency');
    const names = open.map((before) => plan.stages[before]?.definition.name);
    for (const { kind, holder } of waits)
      if (kind === 'dependency' && !names.includes(holder))
        fail(`stage ${name} is said to wait for ${holder ?? 'nothing'}, which it does not`);
  }
}

function kindsOf(waits: readonly Wait[]): string {
  return waits.map(({ kind }) => kind).join(', ');
}
