/**
 * What the broker has sent to machines of tenants and they have not read yet. It is read from the broker at once, whoever reads or does
 * not: there it could be 64 MiB for each connection, of which a tenant has eighty. It owns how much each connection holds.
 *
 *  UNREAD-1 A tenant holds a fair share of the room, its machines together. Where it would be more, the connection of it that holds most
 *     is cut; others are not.
 *  UNREAD-2 One that reads nothing for `STALLED_MS` while something waits for it is cut: its machine is gone, or stands still.
 */
import { FairRoom, type RoomBounds } from '@penstock/async';

/** 25 MiB for a tenant alone: 50 parts of packages, caches or kept files on their way to machines behind a slow line. */
const ROOM: RoomBounds = { shared: 128 * 1024 * 1024, own: 512 * 1024 };
const STALLED_MS = 30_000;
/** What a piece takes beside its bytes. */
const PIECE_BYTES = 512;

export interface UnreadConnection {
  /** The broker has sent a piece. False: the connection is cut, nothing is to be written to it. */
  sent(bytes: number): boolean;
  /** The machine's side has taken a piece. */
  read(bytes: number): void;
  close(): void;
}

export class UnreadAnswers {
  readonly #room: FairRoom;
  readonly #stalledMs: number;
  readonly #ofTenant = new Map<string, Set<Connection>>();

  constructor(bounds: RoomBounds = ROOM, stalledMs: number = STALLED_MS) {
    this.#room = new FairRoom(bounds);
    this.#stalledMs = stalledMs;
  }

  /** `cut`: ends the connection; called once at most, and never after `close`. */
  connection(tenant: string, cut: () => void): UnreadConnection {
    const connections = this.#ofTenant.get(tenant) ?? new Set();
    this.#ofTenant.set(tenant, connections);
    const connection = new Connection(this.#stalledMs, {
      take: (bytes) => this.#take(tenant, connection, bytes),
      giveBack: (bytes) => this.#room.giveBack(tenant, bytes),
      cut,
      ended: () => {
        connections.delete(connection);
        if (connections.size === 0 && this.#ofTenant.get(tenant) === connections) this.#ofTenant.delete(tenant);
      },
    });
    connections.add(connection);
    return connection;
  }

  /** UNREAD-1. */
  #take(tenant: string, by: Connection, bytes: number): boolean {
    while (!this.#room.take(tenant, bytes)) {
      let most = by;
      for (const each of this.#ofTenant.get(tenant) ?? [])
        if (each.held > most.held + (most === by ? bytes : 0)) most = each;
      most.cutOff();
      if (most === by) return false;
    }
    return true;
  }
}

interface Ways {
  take(bytes: number): boolean;
  giveBack(bytes: number): void;
  cut(): void;
  ended(): void;
}

class Connection implements UnreadConnection {
  held = 0;
  readonly #ways: Ways;
  readonly #stalledMs: number;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(stalledMs: number, ways: Ways) {
    this.#stalledMs = stalledMs;
    this.#ways = ways;
  }

  sent(bytes: number): boolean {
    if (this.#isOver || !this.#ways.take(bytes + PIECE_BYTES)) return false;
    this.held += bytes + PIECE_BYTES;
    this.#timer ??= setTimeout(() => this.cutOff(), this.#stalledMs).unref();
    return true;
  }

  read(bytes: number): void {
    if (this.#isOver) return;
    this.held -= bytes + PIECE_BYTES;
    this.#ways.giveBack(bytes + PIECE_BYTES);
    if (this.held > 0) return void this.#timer?.refresh();
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  cutOff(): void {
    if (this.#isOver) return;
    this.close();
    this.#ways.cut();
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#ways.giveBack(this.held);
    this.held = 0;
    this.#ways.ended();
  }
}
