/**
 * The images of a machine: brought where they are missing, each by one pull at a time.
 *
 * IMAGES-1. What was brought with credentials is found again only by the key that brought it, under a name of its own: another
 *     key has to show credentials, although the image is on the machine.
 * IMAGES-2. A name always stands for a place in a registry, and never for the number of an image on this machine.
 */
import { createHash } from 'node:crypto';
import { unlessAborted } from '@penstock/async';
import type { StageImage } from '../contract/port.ts';
import type { Engine, ImageDescription } from './engine.ts';
import { ImageFailed } from './errors.ts';

const OWN_REPOSITORY = 'localhost/penstock-private';
const REFERENCE = /^[a-z0-9][a-z0-9._:/@+-]{0,254}$/i;

export class Images {
  readonly #engine: Engine;
  /** By name: one at a time. Settles, and never rejects. */
  readonly #turns = new Map<string, Promise<void>>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** `onPull` is called before an image is brought. Who is not wanted any more waits for nobody's turn. @throws ImageFailed; the signal's reason */
  async have(
    image: StageImage,
    key: string,
    signal: AbortSignal,
    onPull: (name: string) => void,
  ): Promise<ImageDescription> {
    const name = fullName(image.name);
    const before = this.#turns.get(name) ?? Promise.resolve();
    const turn = unlessAborted(before, signal).then(() => this.#have(name, image, key, signal, onPull));
    // Also of one that has left the queue, whose turn has not come.
    const over = turn.then(
      () => before,
      () => before,
    );
    this.#turns.set(name, over);
    void over.then(() => {
      if (this.#turns.get(name) === over) this.#turns.delete(name);
    });
    return turn;
  }

  async #have(
    name: string,
    image: StageImage,
    key: string,
    signal: AbortSignal,
    onPull: (name: string) => void,
  ): Promise<ImageDescription> {
    signal.throwIfAborted();
    const isPrivate = image.auth !== undefined;
    const kept = isPrivate ? `${OWN_REPOSITORY}/${digestOf(key, name)}:kept` : name;
    if (image.pull !== 'always') {
      const found = await this.#engine.imageOf(kept);
      if (found !== null) return found;
    }
    onPull(name);
    const wasThere = isPrivate && (await this.#engine.imageOf(name)) !== null;
    await this.#engine.pull(name, image.auth, signal);
    const pulled = await this.#engine.imageOf(name);
    if (pulled === null) throw new ImageFailed('it was brought and is not there');
    if (isPrivate) {
      await this.#engine.tag(pulled.id, kept.slice(0, kept.lastIndexOf(':')), 'kept');
      // IMAGES-1.
      if (!wasThere) await this.#engine.untag(name);
    }
    return pulled;
  }
}

/** IMAGES-2: as docker reads it, `postgres:17` is `docker.io/library/postgres:17`. */
function fullName(name: string): string {
  if (!REFERENCE.test(name) || name.startsWith(OWN_REPOSITORY))
    throw new ImageFailed('that is not the name of an image');
  const [first = '', ...rest] = name.split('/');
  if (rest.length === 0) return `docker.io/library/${name}`;
  return /[.:]/.test(first) || first === 'localhost' ? name : `docker.io/${name}`;
}

function digestOf(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 40);
}
