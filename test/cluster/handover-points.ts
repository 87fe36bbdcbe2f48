/**
 * The points at which what a stage is given, or leaves, goes from one process to another: a message each, or its answer. It is
 * shown a runner's messages, and holds those back that stages of its are to be stopped at, so that a process can be killed
 * exactly there. It owns which stage stands where.
 */
import assert from 'node:assert';
import { PART_BYTES } from '@penstock/artifacts';
import type { Direction, NatsMessage } from '@penstock/testkit';
import { ContentDetour, type DetourOptions } from './content-detour.ts';

export const HANDOVER_POINTS = [
  'secret asked for',
  'secret answered',
  'files announced',
  'part on its way',
  'content stored',
  'list on its way',
  'list stored',
  'cache announced',
  'cache on its way',
  'cache stored',
  'result on its way',
  'result answered',
] as const;
/** Those of contents that go past the broker. */
export const STRAIGHT_POINTS = [
  'ticket answered',
  'content halfway',
  'content answered',
  'cache halfway',
  'cache answered',
] as const;
export type HandoverPoint = (typeof HANDOVER_POINTS)[number] | (typeof STRAIGHT_POINTS)[number];

interface Stopping {
  readonly at: HandoverPoint;
  readonly reached: PromiseWithResolvers<void>;
  /** Of the point where its content is to be stopped on a connection of its own. */
  readonly detour: ContentDetour | undefined;
}

interface Seen {
  readonly stage: string;
  readonly attempt: number;
}

/** As far as this looks into the bodies of messages. */
interface Body {
  readonly stage?: string;
  readonly attempt?: number;
  readonly ref?: Seen;
  readonly slip?: string;
  readonly sizeBytes?: number;
  readonly offset?: number;
  readonly value?: { readonly upload?: string | null; readonly direct?: { readonly port: number } } | null;
}

/** Of which content, by the verb of the question for it, what is held back. */
const DETOURS: Readonly<Partial<Record<HandoverPoint, Pick<DetourOptions, 'holds'> & { readonly verb: string }>>> = {
  'content halfway': { verb: 'open', holds: 'rest' },
  'content answered': { verb: 'open', holds: 'answer' },
  'cache halfway': { verb: 'cache-open', holds: 'rest' },
  'cache answered': { verb: 'cache-open', holds: 'answer' },
};

/** By the last words of a subject: what is told on the way there, and what by the answer. */
const VERBS: Readonly<Record<string, readonly [HandoverPoint | null, HandoverPoint | null]>> = {
  begin: ['files announced', null],
  seal: ['list on its way', 'list stored'],
  'cache-begin': ['cache announced', null],
  'cache-put': ['cache on its way', 'cache stored'],
};
const HEAD_BYTES = 6;

export class HandoverStops {
  readonly #stops = new Map<string, Stopping>();
  /** By the subject of the answer. */
  readonly #asked = new Map<
    string,
    Seen & { readonly at: HandoverPoint | 'open' | 'cache-open'; readonly sizeBytes: number }
  >();
  readonly #uploads = new Map<string, Seen & { readonly sizeBytes: number }>();
  readonly #missing = new Set<string>();
  #isOver = false;

  /** Before the stage starts. */
  async stop(stage: string, at: HandoverPoint): Promise<void> {
    const { holds } = DETOURS[at] ?? {};
    const reached = (): void => void this.#isAt({ stage }, at);
    const detour = holds === undefined ? undefined : await ContentDetour.open({ holds, reached });
    this.#stops.set(stage, { at, reached: Promise.withResolvers(), detour });
    this.#missing.add(stage);
  }

  /** Resolves when every stage stands where it is to be stopped. */
  async reached(): Promise<void> {
    await Promise.all([...this.#stops.values()].map(({ reached }) => reached.promise));
  }

  /** The stages that are not there yet, for a test that has waited too long. */
  get missing(): readonly string[] {
    return [...this.#missing];
  }

  /** From here on everything passes. */
  end(): void {
    this.#isOver = true;
    for (const { detour } of this.#stops.values()) detour?.letGo();
  }

  close(): void {
    for (const { detour } of this.#stops.values()) detour?.close();
  }

  readonly holdsBack = (message: NatsMessage, direction: Direction): boolean => {
    if (this.#isOver) return false;
    return direction === 'to-broker' ? this.#sends(message) : this.#hears(message);
  };

  #sends({ subject, reply, payload }: NatsMessage): boolean {
    const [first, second, third, , last = ''] = subject.split('.');
    if (first === 'slip') return this.#step(slipOf(bodyOf(payload)), 'secret asked for', 'secret answered', reply);
    if (first === 'run' && third === 'result')
      return this.#step(bodyOf(payload), 'result on its way', 'result answered', reply);
    if (first !== 'svc' || second !== 'registry') return false;
    if (third === 'upload') {
      const upload = this.#uploads.get(last);
      const { offset = 0 } = upload === undefined ? {} : bodyOf(payload);
      // The first part is taken, what is behind the second is not.
      if (offset === 0) return false;
      const isLast = offset + PART_BYTES >= (upload?.sizeBytes ?? 0);
      return this.#step(upload, 'part on its way', isLast ? 'content stored' : null, reply);
    }
    if (third !== 'artifacts') return false;
    if (last === 'open' || last === 'cache-open') {
      const { ref, sizeBytes = 0 } = bodyOf(payload);
      if (ref !== undefined && reply !== undefined) this.#asked.set(reply, { ...ref, at: last, sizeBytes });
      return false;
    }
    const [going, answered] = VERBS[last] ?? [null, null];
    return this.#step(going === null ? undefined : bodyOf(payload).ref, going, answered, reply);
  }

  #hears({ subject, payload }: NatsMessage): boolean {
    const asked = this.#asked.get(subject);
    if (asked === undefined) return false;
    if (asked.at !== 'open' && asked.at !== 'cache-open') return this.#isAt(asked, asked.at);
    const { upload, direct } = bodyOf(payload).value ?? {};
    if (typeof upload === 'string' && asked.at === 'open') this.#uploads.set(upload, asked);
    if (direct === undefined) return false;
    if (asked.at === 'open' && this.#isAt(asked, 'ticket answered')) return true;
    const { at, detour } = this.#stops.get(asked.stage) ?? {};
    if (at === undefined || detour === undefined || DETOURS[at]?.verb !== asked.at) return false;
    detour.toward(direct.port, asked.sizeBytes);
    leadTo(detour.port, payload, direct.port);
    return false;
  }

  #step(
    seen: Partial<Seen> | undefined,
    going: HandoverPoint | null,
    answered: HandoverPoint | null,
    reply: string | undefined,
  ): boolean {
    const { stage, attempt } = seen ?? {};
    if (stage === undefined || attempt === undefined) return false;
    if (answered !== null && reply !== undefined)
      this.#asked.set(reply, { stage, attempt, at: answered, sizeBytes: 0 });
    return going !== null && this.#isAt({ stage }, going);
  }

  #isAt({ stage }: Pick<Seen, 'stage'>, at: HandoverPoint): boolean {
    const stop = this.#stops.get(stage);
    if (stop?.at !== at) return false;
    this.#missing.delete(stage);
    stop.reached.resolve();
    return true;
  }
}

/** Of a message of the bus: JSON, or JSON with bytes behind it. */
function bodyOf(payload: Buffer): Body {
  const json = payload[0] === 0 ? payload.subarray(HEAD_BYTES, HEAD_BYTES + payload.readUInt32BE(2)) : payload;
  return JSON.parse(json.toString('utf8')) as Body;
}

/** In the message itself: the ports that a system gives have five digits, all of them. */
function leadTo(port: number, payload: Buffer, from: number): void {
  const [written, instead] = [from, port].map((each) => `"port":${each}`);
  const at = payload.indexOf(written ?? '');
  assert(at !== -1 && written?.length === instead?.length, 'a ticket says its port');
  payload.write(instead ?? '', at);
}

function slipOf({ slip = '' }: Body): Partial<Seen> {
  return JSON.parse(Buffer.from(slip.split('.')[0] ?? '', 'base64url').toString('utf8')) as Partial<Seen>;
}
