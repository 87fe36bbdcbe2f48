/**
 * A lock between processes of one machine, so that two starts at once do not both install.
 *
 * LOCK-1. The lock is a file that names its holder (host, pid, start time of that pid) and the program that works for it, if one does;
 *     it counts only while one of them lives, so a killed start never blocks the next one, and what it has left behind works alone.
 * LOCK-2. A dead holder's file is removed only by the process that holds `<file>.steal`, after it has read the file again;
 *     otherwise two waiters could each remove "the stale file", the second one removing the first one's fresh lock.
 * LOCK-3. A holder on another host (a checkout on a shared disk) cannot be probed; its lock counts for `FOREIGN_LOCK_MS`.
 */
import { mkdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { BootstrapProblem } from './errors.js';
import { hasEnded, nameOf } from './process-name.js';

/** Longer than the slowest install seen (a Go build and a cold npm cache together stay under five minutes). */
const WAIT_MS_MAX = 15 * 60_000;
const FOREIGN_LOCK_MS = 15 * 60_000;
const STEAL_MS = 10_000;
const POLL_MS = 100;
/** Waits shorter than this are not worth a line on the screen. */
const SAY_AFTER_MS = 1_500;

/**
 * Runs `work` while holding `file`. Where the folder cannot be written the work runs without a lock: it will then either
 * have nothing to write, or fail with a sentence of its own. `work` gets a function that it tells the pid of a program which
 * goes on where this process is killed: the lock then counts until that has ended, too.
 */
export async function withLock(file, say, work) {
  const held = await acquire(file, say);
  try {
    return await work((pid) => held && tell(file, pid));
  } finally {
    if (held) remove(file);
  }
}

async function acquire(file, say) {
  const began = Date.now();
  let said = false;
  for (;;) {
    try {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, JSON.stringify({ host: hostname(), ...nameOf(process.pid) }), { flag: 'wx' });
      return true;
    } catch (error) {
      if (error.code !== 'EEXIST') return false;
    }
    if (isDead(file)) {
      steal(file);
      continue;
    }
    const waitedMs = Date.now() - began;
    if (waitedMs > WAIT_MS_MAX) {
      throw new BootstrapProblem(
        `another start has been installing for ${Math.round(waitedMs / 60_000)} minutes; stop it, or remove ${file}, and start again.`,
      );
    }
    if (!said && waitedMs > SAY_AFTER_MS) {
      said = true;
      say('Waiting for another start that is installing.');
    }
    await pause(POLL_MS);
  }
}

function isDead(file) {
  let text;
  let ageMs;
  try {
    text = readFileSync(file, 'utf8');
    ageMs = Date.now() - statSync(file).mtimeMs;
  } catch {
    return false; // Released while we looked: the next attempt to create it decides.
  }
  let holder;
  try {
    holder = JSON.parse(text);
  } catch {
    return ageMs > STEAL_MS; // Created and not yet written, or its writer was killed in between.
  }
  if (holder.host !== hostname()) return ageMs > FOREIGN_LOCK_MS;
  return hasEnded(holder) && (holder.program === undefined || hasEnded(holder.program));
}

function tell(file, pid) {
  try {
    writeFileSync(file, JSON.stringify({ host: hostname(), ...nameOf(process.pid), program: nameOf(pid) }));
  } catch {
    // A disk that is full; the lock counts for its holder as before, or for a few seconds.
  }
}

function steal(file) {
  const token = `${file}.steal`;
  try {
    writeFileSync(token, '', { flag: 'wx' });
  } catch {
    try {
      if (Date.now() - statSync(token).mtimeMs > STEAL_MS) remove(token);
    } catch {
      // Its holder has just finished.
    }
    return;
  }
  if (isDead(file)) remove(file);
  remove(token);
}

function remove(file) {
  try {
    unlinkSync(file);
  } catch {
    // Already gone.
  }
}
