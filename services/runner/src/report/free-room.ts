/** Whether the disk of the data folder has room for another stage; it is told when that changes. */
import type { Log } from '@penstock/telemetry/log';
import { freeOnDisk, type FreeOnDisk } from './disk.ts';

/** Workspaces, lists of processes and spooled chunks begin small: a stage that starts finds room for those. */
const FREE_BYTES_MIN = 16 * 1024 * 1024;
/** Its folders, lists and streams are some tens; without them each stage would be taken, and fail at once. */
const FREE_FILES_MIN = 1_000;
/** Of a disk with so many times the room that is needed, an answer counts for so long: each slot asks some times a stage. */
const AMPLE_TIMES = 64;
const AMPLE_MS = 20;

export class FreeRoom {
  readonly #dataDir: string;
  readonly #log: Pick<Log, 'info' | 'error'>;
  readonly #freeBytesMin: number;
  #hadRoom = true;
  #ampleUntil = 0;

  constructor(dataDir: string, log: Pick<Log, 'info' | 'error'>, freeBytesMin = FREE_BYTES_MIN) {
    this.#dataDir = dataDir;
    this.#log = log;
    this.#freeBytesMin = freeBytesMin;
  }

  hasRoom(): boolean {
    const now = performance.now();
    if (now < this.#ampleUntil) return true;
    const free = freeOnDisk(this.#dataDir);
    if (this.#holds(free, AMPLE_TIMES)) this.#ampleUntil = now + AMPLE_MS;
    const hasRoom = this.#holds(free, 1);
    if (hasRoom !== this.#hadRoom) this.#tell(hasRoom, free);
    this.#hadRoom = hasRoom;
    return hasRoom;
  }

  #holds({ bytes, files }: FreeOnDisk, times: number): boolean {
    return bytes >= this.#freeBytesMin * times && files >= FREE_FILES_MIN * times;
  }

  #tell(hasRoom: boolean, { bytes, files }: FreeOnDisk): void {
    const fields = { dataDir: this.#dataDir, free: bytes, freeFiles: files };
    if (hasRoom) this.#log.info(fields, 'the disk has room again: the runner takes stages');
    else this.#log.error(fields, 'the disk of the data folder is full: the runner takes no stages until it has room');
  }
}
