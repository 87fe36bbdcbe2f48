/** Pausing, resuming and draining: keys on the broker that every scheduler follows (P35). */
import {
  BrokerAway,
  type Bus,
  type Control,
  controlName,
  CONTROLS_MAX,
  type ControlTarget,
  NoResponders,
  putControl,
  readControls,
  RequestTimeout,
  StoreRefused,
} from '@penstock/bus';
import { BadUserInput, Unavailable } from '@penstock/errors';

export interface ControlsOptions {
  readonly bus: Bus;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export class ControlDesk {
  readonly #options: ControlsOptions;

  constructor(options: ControlsOptions) {
    this.#options = options;
  }

  /** What is held up now, the oldest first. */
  async standing(): Promise<Control[]> {
    return (await this.#read())
      .filter(({ resumedAt }) => resumedAt === undefined)
      .toSorted((a, b) => a.since - b.since);
  }

  /** Saying it again changes the reason and nothing else. Resolves when the broker has it. */
  async holdUp(target: ControlTarget, by: string, reason: string | undefined): Promise<void> {
    const known = await this.#read();
    const before = known.find((control) => controlName(control.target) === controlName(target));
    if (before === undefined && known.length >= CONTROLS_MAX)
      throw new BadUserInput(
        `There are ${CONTROLS_MAX} pauses and drains, those of the last week included: resume some, or pause everything.`,
      );
    const since = before === undefined || before.resumedAt !== undefined ? this.#options.now() : before.since;
    await this.#write({ target, since, by, ...(reason === undefined ? {} : { reason }) });
  }

  /** False: it was not held up. */
  async letGo(target: ControlTarget, by: string): Promise<boolean> {
    const known = await this.#read();
    const before = known.find((control) => controlName(control.target) === controlName(target));
    if (before === undefined || before.resumedAt !== undefined) return false;
    await this.#write({ target, since: before.since, by, resumedAt: this.#options.now() });
    return true;
  }

  async #read(): Promise<Control[]> {
    return await readControls(this.#options.bus).catch(unlessAway);
  }

  async #write(control: Control): Promise<void> {
    await putControl(this.#options.bus, control).catch(unlessAway);
  }
}

function unlessAway(cause: unknown): never {
  const isAway =
    cause instanceof BrokerAway ||
    cause instanceof NoResponders ||
    cause instanceof RequestTimeout ||
    cause instanceof StoreRefused;
  if (isAway) throw new Unavailable('The broker, which keeps what is paused, does not answer.', { cause });
  throw cause;
}
