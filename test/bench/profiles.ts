/**
 * What Node's own profiler has written of several processes and threads, as one tree of functions and the time in each. Time in
 * which a thread had nothing to do is left out.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** As V8 writes them. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

export interface Frame {
  readonly name: string;
  /** File and line, or what part of Node it is. */
  readonly place: string;
  selfMs: number;
  /** With what it calls. */
  totalMs: number;
  readonly children: Map<string, Frame>;
}

const IDLE = '(idle)';
/** V8's own names for what is no function stand beside the script, not below it. */
const ROOT = '(root)';

export function readProfiles(folder: string, checkout: string): Frame {
  const whole = newFrame('all processes', '');
  for (const file of readdirSync(folder)) {
    const [, thread] = /^CPU\.\d+\.\d+\.(\d+\.\d+)\.\d+\.cpuprofile$/.exec(file) ?? [];
    if (thread === undefined) continue;
    const profile = JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile;
    addProfile(whole, nameOf(folder, thread), profile, checkout);
  }
  return whole;
}

/** Processes and threads of one name count as one. */
export function addProfile(whole: Frame, name: string, profile: CpuProfile, checkout: string): void {
  const process = childOf(whole, name, '');
  const selfMs = new Map<number, number>();
  profile.samples.forEach((id, index) => {
    // The time since the sample before was spent in what that one has seen.
    const ms = Math.max(0, profile.timeDeltas[index + 1] ?? 0) / 1000;
    selfMs.set(id, (selfMs.get(id) ?? 0) + ms);
  });
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const [root] = profile.nodes;
  const open: { readonly id: number; readonly parents: readonly Frame[] }[] =
    root === undefined ? [] : [{ id: root.id, parents: [whole, process] }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const node = nodes.get(next.id);
    if (node === undefined || node.callFrame.functionName === IDLE) continue;
    const { parents } = next;
    const parent = parents.at(-1) ?? process;
    const { functionName, url, lineNumber } = node.callFrame;
    const frame =
      functionName === ROOT
        ? process
        : childOf(parent, functionName === '' ? '(anonymous)' : functionName, placeOf(url, lineNumber, checkout));
    const path = frame === process ? parents : [...parents, frame];
    const ms = selfMs.get(next.id) ?? 0;
    frame.selfMs += ms;
    for (const each of path) each.totalMs += ms;
    for (const id of node.children ?? []) open.push({ id, parents: path });
  }
}

/** The functions that most time is spent in itself, wherever they are called from. */
export function longest(root: Frame, count: number): Frame[] {
  const all = new Map<string, Frame>();
  const open = [root];
  for (let frame = open.pop(); frame !== undefined; frame = open.pop()) {
    const key = `${frame.name} ${frame.place}`;
    const found = all.get(key) ?? newFrame(frame.name, frame.place);
    found.selfMs += frame.selfMs;
    all.set(key, found);
    open.push(...frame.children.values());
  }
  return [...all.values()].toSorted((a, b) => b.selfMs - a.selfMs).slice(0, count);
}

export function newFrame(name: string, place: string): Frame {
  return { name, place, selfMs: 0, totalMs: 0, children: new Map() };
}

function childOf(parent: Frame, name: string, place: string): Frame {
  const key = `${name} ${place}`;
  let child = parent.children.get(key);
  if (child === undefined) {
    child = newFrame(name, place);
    parent.children.set(key, child);
  }
  return child;
}

function placeOf(url: string, line: number, checkout: string): string {
  if (url === '') return '';
  const path = url
    .replace('file://', '')
    .replace(`${checkout}/`, '')
    .replace(/^.*node_modules\//, '');
  return `${path}:${line + 1}`;
}

function nameOf(folder: string, thread: string): string {
  try {
    return readFileSync(join(folder, `${thread}.name`), 'utf8');
  } catch {
    return 'another process';
  }
}
