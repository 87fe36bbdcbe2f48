/** The log of a run as it comes: lines by stage, and a word to whoever shows them. */
import { signal, type Signal } from '@preact/signals';
import type { ServerEvent } from '../api/sse-parser.ts';
import { followStream, type StreamState } from '../api/sse.ts';
import type { Problem } from '../api/http.ts';
import { LineStore } from './line-store.ts';

/** What all stages of a run may hold in this page; the oldest lines of the largest stage go first. */
const CHARS_MAX = 256 * 1024 * 1024;

export class RunLog {
  readonly #stages = new Map<string, LineStore>();
  readonly #changed = new Map<string, Signal<number>>();
  readonly #onRunChange: () => void;
  readonly #stop: () => void;
  #chars = 0;
  readonly state = signal<StreamState>('connecting');
  readonly problem = signal<Problem | null>(null);

  /** `onRunChange` is called when something else than a line has come. */
  constructor(runId: string, onRunChange: () => void) {
    this.#onRunChange = onRunChange;
    this.#stop = followStream({
      url: `/pipeline/${encodeURIComponent(runId)}/logs`,
      onEvents: (events) => this.#take(events),
      onState: (state, problem) => {
        this.state.value = state;
        this.problem.value = problem ?? null;
      },
    });
  }

  close(): void {
    this.#stop();
  }

  lines(stage: string): LineStore {
    const known = this.#stages.get(stage);
    if (known !== undefined) return known;
    const store = new LineStore();
    this.#stages.set(stage, store);
    return store;
  }

  /** Changes with each addition to the stage's lines. */
  changed(stage: string): Signal<number> {
    const known = this.#changed.get(stage);
    if (known !== undefined) return known;
    const changed = signal(0);
    this.#changed.set(stage, changed);
    return changed;
  }

  #take(events: readonly ServerEvent[]): void {
    const touched = new Set<string>();
    let runChanged = false;
    for (const { name, data } of events) {
      const event = JSON.parse(data) as Record<string, unknown>;
      const stage = typeof event['stage'] === 'string' ? event['stage'] : null;
      if (name !== 'stage_log') runChanged = true;
      if (stage === null) continue;
      const text = lineOf(name, event);
      if (text === null) continue;
      const at = Date.parse(String(event['timestamp']));
      this.lines(stage).add(text.line, text.stream, Number.isNaN(at) ? 0 : at);
      this.#chars += text.line.length;
      touched.add(stage);
    }
    this.#keepWithin();
    for (const stage of touched) this.changed(stage).value += 1;
    if (runChanged) this.#onRunChange();
  }

  #keepWithin(): void {
    while (this.#chars > CHARS_MAX) {
      const largest = [...this.#stages.values()].reduce((most, each) => (each.chars > most.chars ? each : most));
      const dropped = largest.dropOldest();
      if (dropped === 0) return;
      this.#chars -= dropped;
    }
  }
}

/** A line of the stage's output, or the engine's word of another attempt; null for what has no place among the lines. */
function lineOf(name: string, event: Record<string, unknown>): { line: string; stream: string } | null {
  if (name === 'stage_log') return { line: String(event['line'] ?? ''), stream: String(event['stream'] ?? 'stdout') };
  if (name === 'stage_started' && Number(event['attempt']) > 1)
    return { line: `Attempt ${String(event['attempt'])} begins.`, stream: 'attempt' };
  return null;
}
